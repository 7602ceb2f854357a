"""YOLO, DetectNet and TrueBoxes: boxes from maps, and what losses teach, against plain loops."""

import math

import numpy as np
import pytest

from sparknet import Net, NetParams, RDDLayer, SolverParams
from sparknet.dsl import Convolution
from sparknet.errors import LayerError
from sparknet.layers.detectnet import group_rectangles
from sparknet.models import Map, ssd
from tests.caffe.gradient import build, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw, same

V2 = [1.0, 2.0, 3.0, 1.5]
V3 = [10, 13, 40, 30, 60, 90, 20, 25]
LABELS = np.zeros((2, 4, 5), np.float32)
LABELS[0, :2] = [[1, 0.3, 0.6, 0.4, 0.3], [2, 0.8, 0.1, 0.2, 0.5]]
LABELS[1, :1] = [[0, 0.5, 0.5, 0.9, 0.8]]


def numbers(name, values):
    return " ".join(f"{name}: {value}" for value in values)


def sig(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def iou(a, b):
    low = [max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2) for i in (0, 1)]
    high = [min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) for i in (0, 1)]
    common = max(high[0] - low[0], 0) * max(high[1] - low[1], 0)
    return float(common / (a[2] * a[3] + b[2] * b[3] - common))


def cells(x, boxes):
    """Image, box, row, column, and the values there."""
    length = x.shape[1] // boxes
    for n, a, i, j in np.ndindex(x.shape[0], boxes, *x.shape[2:]):
        yield n, a, i, j, [float(v) for v in x[n, a * length : (a + 1) * length, i, j]]


def box(values, i, j, size, anchor):
    wide, high = size[1], size[0]
    return (
        (j + sig(values[0])) / wide,
        (i + sig(values[1])) / high,
        math.exp(values[2]) * anchor[0] / wide,
        math.exp(values[3]) * anchor[1] / high,
    )


def survivors(found, images, threshold):
    rows = []
    for n in range(images):
        kept = []
        for score, label, where, _ in sorted((f for f in found if f[3] == n), key=lambda f: -f[0]):
            if all(iou(where, other) < threshold for _, _, other in kept):
                kept.append((score, label, where))
        rows += [
            [n, label, score, w[0] - w[2] / 2, w[1] - w[3] / 2, w[0] + w[2] / 2, w[1] + w[3] / 2]
            for score, label, w in kept
        ]
    return np.array(rows)


def test_yolov2_boxes():
    x = draw(2, 2 * 8, 3, 4)
    options = (
        "num_classes: 3 num_box: 2 confidence_threshold: 0.3 nms_threshold: 0.3 "
        f"{numbers('biases', V2)}"
    )
    net = run(
        layer_text("YoloDetectionOutput", f"yolo_detection_output_param {{ {options} }}"),
        {"x": x},
        force=False,
    )
    found = []
    for n, a, i, j, values in cells(x, 2):
        e = [math.exp(v) for v in values[5:]]
        score = sig(values[4]) * max(e) / sum(e)
        if score >= 0.3:
            found.append((score, e.index(max(e)) + 1, box(values, i, j, (3, 4), V2[2 * a :]), n))
    want = survivors(found, 2, 0.3)
    assert len(want) > 4
    same(net.blobs["y"].data[0, 0], want, 1e-4, 1e-5)


def test_yolov3_boxes():
    inputs = {"a": draw(2, 2 * 7, 2, 3), "b": draw(2, 2 * 7, 4, 6, seed=1)}
    options = (
        f"num_classes: 2 num_box: 2 confidence_threshold: 0.5 nms_threshold: 0.4 mask_group_num: 2 "
        f"{numbers('biases', V3)} {numbers('mask', [2, 1, 0, 3])} "
        "anchors_scale: 32 anchors_scale: 16"
    )
    net = run(
        layer_text(
            "Yolov3DetectionOutput", f"yolov3_detection_output_param {{ {options} }}", "a b"
        ),
        inputs,
        force=False,
    )
    found = []
    for name, mask, scale in (("a", [2, 1], 32), ("b", [0, 3], 16)):
        for n, a, i, j, values in cells(inputs[name], 2):
            anchor = [V3[2 * mask[a]] / scale, V3[2 * mask[a] + 1] / scale]
            where = box(values, i, j, inputs[name].shape[2:], anchor)
            for c in (0, 1):
                score = sig(values[4]) * sig(values[5 + c])
                if score > 0.5:
                    found.append((score, c + 1, where, n))
    want = survivors(found, 2, 0.4)
    assert len(want) > 3
    same(net.blobs["y"].data[0, 0], want, 1e-4, 1e-5)


def test_no_box_is_sure_enough():
    options = f"num_classes: 3 num_box: 2 confidence_threshold: 2 {numbers('biases', V2)}"
    net = run(
        layer_text("YoloDetectionOutput", f"yolo_detection_output_param {{ {options} }}"),
        {"x": draw(2, 16, 2, 2)},
        force=False,
    )
    assert net.blobs["y"].data[0, 0].tolist() == [[0] + [-1] * 6, [1] + [-1] * 6]


WIDE, HIGH, STRIDE = 48, 32, 8


# -- the layers in Python --------------------------------------------------------------------


def _python(layer: str, settings: str, bottom: str, top: str) -> str:
    options = (
        f"python_param {{ module: 'caffe.layers.detectnet.clustering' layer: '{layer}' "
        f"param_str: '{settings}' }}"
    )
    return layer_text("Python", options, bottom, top).replace('"l"', f'"{layer}"')


def test_boxes_are_clustered():
    coverage, corners = np.zeros((1, 1, 4, 6)), np.zeros((1, 4, 4, 6))
    for row, column in ((1, 1), (1, 2), (2, 1), (2, 2)):
        coverage[0, 0, row, column] = 0.9
        corners[0, :, row, column] = np.array([6, 5, 25, 27]) - np.tile([column, row], 2) * STRIDE
    coverage[0, 0, 3, 5], corners[0, :, 3, 5] = 0.9, [-3, -3, 6, 6]
    size = f"{WIDE}, {HIGH}, {STRIDE}"
    text = _python("ClusterDetections", f"{size}, 0.5, 3, 0.02, 8, 1", "c b", "found")
    net = run(text, {"c": coverage, "b": corners}, force=False, phase=1)
    actual = net.blobs["found"].data
    assert actual.shape == (1, 50, 5)
    same(actual[0, 0], np.float32([6, 5, 25, 27, np.float16(math.log(4))]))
    assert not actual[0, 1:].any()


def test_rectangles_that_agree():
    """Groups of more than two; the small one inside the large one goes."""
    boxes = np.array(
        [[10, 10, 40, 40], [11, 10, 40, 40], [10, 12, 39, 40], [10, 10, 40, 41],
         [20, 20, 8, 8], [20, 20, 8, 8], [20, 21, 8, 8],
         [90, 90, 9, 9], [90, 90, 9, 9], [91, 90, 9, 9], [0, 80, 5, 5]]
    )  # fmt: skip
    found, many = group_rectangles(boxes, 2, 0.2)
    assert found.tolist() == [[10, 10, 40, 40], [90, 90, 9, 9]]
    assert many.tolist() == [4, 3]
    assert len(group_rectangles(boxes, 0, 0.2)[0]) == len(boxes)


def test_settings_of_the_python_layers():
    text = _python("ClusterDetections", "48, 32", "c b", "found")
    with pytest.raises(LayerError, match="needs 7 numbers in param_str"):
        build(text, {"c": np.zeros((1, 1, 4, 6)), "b": np.zeros((1, 4, 4, 6))})


def test_boxes_become_rows():
    boxes = np.full((3, 2, 6), -1, np.float32)
    boxes[0, 0] = [2, 0.1, 0.2, 0.3, 0.4, 1]
    boxes[2] = [[1, 0.5, 0.6, 0.7, 0.8, 0], [3, 0, 0, 1, 1, 0]]
    net = run(layer_text("TrueBoxes"), {"x": boxes})
    rows = np.array(net.blobs["y"].data)
    assert rows.shape == (1, 1, 6, 8)
    there = rows[0, 0][rows[0, 0, :, 0] >= 0]
    want = [
        [0, 2, 0, 0.1, 0.2, 0.3, 0.4, 1],
        [2, 1, 0, 0.5, 0.6, 0.7, 0.8, 0],
        [2, 3, 1, 0, 0, 1, 1, 0],
    ]
    np.testing.assert_array_equal(there, np.array(want, np.float32))


@pytest.mark.parametrize("shape", [(2, 5), (2, 3, 4), (2, 3, 7), (1, 2, 3, 5)])
def test_other_shapes_are_no_boxes(shape):
    with pytest.raises(LayerError, match=r"'l': .* records x boxes x 5 or 6; they are "):
        build(layer_text("TrueBoxes"), {"x": np.zeros(shape, np.float32)})


def detector(batch: int) -> NetParams:
    return NetParams(
        "small",
        RDDLayer("data", shape=[batch, 3, 16, 16]),
        RDDLayer("boxes", shape=[batch, 2, 5]),
        Convolution("map", "data", num_output=4, kernel_size=4, stride=4, weight_filler="xavier"),
        Convolution("map2", "map", num_output=4, kernel_size=2, stride=2, weight_filler="xavier"),
        ssd([Map("map", least=6), Map("map2", least=10, most=14, ratios=[2])], 3),
    )


def test_a_detector_with_joined_priors_trains_in_shared_memory():
    """The prior boxes need no gradient, and so nothing waits for it."""
    rng = np.random.default_rng(0)
    boxes = np.full((8, 2, 5), -1, np.float32)
    boxes[:, 0] = [1, 0.2, 0.2, 0.6, 0.6]
    rows = {"data": rng.normal(size=(8, 3, 16, 16)).astype(np.float32), "boxes": boxes}
    trained = []
    for keep in (False, True):
        solver = SolverParams(net=detector(4), base_lr=0.01, lr_policy="fixed", random_seed=1)
        net = Net(solver, keep_blobs=keep)
        net.set_training_data(rows)
        net.train(4)
        trained.append(net.get_weights().flat.numpy().copy())
    np.testing.assert_allclose(*trained, rtol=1e-5, atol=1e-7)
    assert not any(name.endswith("priorbox") for name in backward(net))


def backward(net: Net) -> list[str]:
    graph = net.net.graph
    return [node.name for node in graph.nodes if node.needs_backward]
