"""The dialects of PriorBox, and RefineDet's second stage, against slow arithmetic."""

import numpy as np
import pytest

from sparknet import Net
from sparknet.errors import LayerError
from tests.caffe import ssd
from tests.caffe.gradient import biased, build, check_gradients, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw, same
from tests.caffe.multibox import multibox

PRIORS, CLASSES = 12, 3


def _prior_net(options: str) -> str:
    return """
layer { name: "i" type: "Input" top: "map" top: "image"
        input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 }
                      shape { dim: 1 dim: 3 dim: 100 dim: 200 } } }
""" + layer_text("PriorBox", f"prior_box_param {{ {options} }}", "map image")  # fmt: skip


def _boxes(options, dialect):
    net = Net(_prior_net(options), dialect=dialect)
    top = net.forward({"map": np.zeros((1, 1, 1, 2)), "image": np.zeros((1, 3, 100, 200))})["y"]
    return top[0, 0].reshape(-1, 4) * [200, 100, 200, 100]


def test_textboxes():
    actual = _boxes("min_size: 4.5 max_size: 18 aspect_ratio: 4 flip: false", "textboxes")
    sizes = [(4.5, 4.5), (9, 9), (9, 2.25)]
    want = [
        [x - w / 2, y - h / 2, x + w / 2, y + h / 2]
        for x in (50, 150)
        for w, h in sizes
        for y in (50, 100)
    ]
    same(actual, np.clip(want, 0, [200, 100, 200, 100]), 1e-5, 1e-4)
    assert _boxes("min_size: 4 clip: false", "textboxes")[:, 3].max() == pytest.approx(102)
    assert len(_boxes("min_size: 4", None)) == 2


def test_faceboxes():
    actual = _boxes("min_size: 32 min_size: 64 min_size: 128 step: 32", "faceboxes")
    want = []
    for x in (16, 48):
        for size, apart, many in ((32, 8, 4), (64, 16, 2), (128, 0, 1)):
            for i in range(many):
                for j in range(many):
                    cx, cy = x + apart * (j - many // 2), 16 + apart * (i - many // 2)
                    half = (size - 1) / 2
                    want.append([cx - half, cy - half, cx + half, cy + half])
    same(actual, np.array(want, np.float32), 1e-5, 1e-4)


def test_clustered():
    options = "prior_box_param { width: 10 width: 3.5 height: 4 height: 8 step: 40 }"
    net = run(
        layer_text("PriorBoxClustered", options, "map image"),
        {"map": np.zeros((1, 1, 1, 2)), "image": np.zeros((1, 3, 100, 200))},
    )
    actual = net.blobs["y"].data[0, 0].reshape(-1, 4) * [200, 100, 200, 100]
    want = [
        [x - w / 2, 20 - h / 2, x + w / 2, 20 + h / 2]
        for x in (20, 60)
        for w, h in ((10, 4), (3.5, 8))
    ]
    same(actual, np.array(want, np.float32), 1e-5, 1e-4)
    with pytest.raises(LayerError, match="a height for each width; there are 1 and 0"):
        build(
            layer_text("PriorBoxClustered", "prior_box_param { width: 1 }", "a b"),
            {"a": np.zeros((1, 1, 1, 1)), "b": np.zeros((1, 1, 1, 1))},
        )


def test_other_priors_are_not_taken_for_these():
    text = layer_text("DetectionOutput", "detection_output_param { num_classes: 2 }", "l c p")
    inputs = {"l": draw(1, 32), "c": draw(1, 16), "p": draw(1, 2, 16)}
    with pytest.raises(LayerError, match='dialect="textboxes" and "faceboxes" lay other priors'):
        build(text, inputs)


# -- RefineDet -------------------------------------------------------------------------------


def _inputs(images):
    rng = np.random.default_rng(4)
    low, size = rng.uniform(0, 0.6, (PRIORS, 2)), rng.uniform(0.1, 0.4, (PRIORS, 2))
    priors = np.stack([np.hstack([low, low + size]), rng.uniform(0.1, 0.3, (PRIORS, 4))])
    return {
        "loc": rng.normal(0, 0.3, (images, PRIORS * 4)),
        "conf": rng.uniform(0, 1, (images, PRIORS * CLASSES)),
        "priors": priors.reshape(1, 2, -1),
        "seen": rng.uniform(0, 1, (images, PRIORS * 2)),
        "moves": rng.normal(0, 0.3, (images, PRIORS * 4)),
    }


def _refined(priors, moves, code):
    boxes, variances = priors.reshape(2, -1, 4)
    own = [ssd.decode(code, *three) for three in zip(boxes, variances, moves, strict=True)]
    return np.stack([own, variances]).reshape(1, 2, -1)


@pytest.mark.parametrize("stage", ["seen moves", "seen"])
def test_detections(stage):
    inputs = _inputs(2)
    options = (
        "detection_output_param { num_classes: 3 code_type: CENTER_SIZE objectness_score: 0.4 "
        "confidence_threshold: 0.2 nms_param { nms_threshold: 0.45 top_k: 9 } keep_top_k: 8 }"
    )
    names = f"loc conf priors {stage}"
    used = {name: inputs[name] for name in names.split()}
    net = run(layer_text("DetectionOutput", options, names), used, phase=1)
    want = []
    for image in range(2):
        seen = inputs["seen"][image].reshape(-1, 2)[:, 1] >= 0.4
        scores = np.where(seen[:, None], inputs["conf"][image].reshape(-1, CLASSES), 0)
        priors = inputs["priors"]
        if "moves" in stage:
            priors = _refined(priors, inputs["moves"][image].reshape(-1, 4), "CENTER_SIZE")
        rows = ssd.detect(
            inputs["loc"][image : image + 1], scores.reshape(1, -1), priors, classes=3, keep=8,
            code="CENTER_SIZE", least=0.2, threshold=0.45, top_k=9,
        )[0, 0]  # fmt: skip
        want.append(np.hstack([np.full((len(rows), 1), image), rows[:, 1:]]))
    same(net.blobs["y"].data[0, 0], np.concatenate(want).astype(np.float32), 1e-4, 1e-5)


def test_four_bottoms_without_a_score_are_ssds():
    inputs = {name: value for name, value in _inputs(2).items() if name != "moves"}
    inputs["seen"][...] = 0
    text = "detection_output_param { num_classes: 3 confidence_threshold: 0.2 }"
    found = []
    for names in ("loc conf priors", "loc conf priors seen"):
        used = {name: inputs[name] for name in names.split()}
        net = run(layer_text("DetectionOutput", text, names), used, phase=1)
        found.append(np.array(net.blobs["y"].data))
    same(*found)


def _loss_inputs():
    inputs = _inputs(1)
    corners = _refined(inputs["priors"], inputs["moves"].reshape(-1, 4), "CORNER")[0, 0]
    corners = corners.reshape(-1, 4)[[1, 6]] + 0.02
    truths = [[0, 1 + i, i, *corners[i], 0] for i in range(2)]
    inputs["truths"] = np.array(truths).reshape(1, 1, 2, 8)
    return inputs


LOSS = "multibox_loss_param {{ num_classes: {} neg_pos_ratio: {} neg_overlap: 1 {} }}"
BOTTOMS = "loc conf priors truths seen moves"


def _loss(options, names, inputs):
    net = run(layer_text("MultiBoxLoss", options, names), {n: inputs[n] for n in names.split()})
    return float(net.blobs["y"].data)


def test_loss_of_moved_priors():
    inputs = _loss_inputs()
    inputs["seen"][...] = 1
    moved = _refined(inputs["priors"], inputs["moves"].reshape(-1, 4), "CORNER")
    want = multibox(
        inputs["loc"], inputs["conf"], moved, inputs["truths"], classes=3, ratio=2,
        negative_overlap=1,
    )  # fmt: skip
    actual = _loss(LOSS.format(3, 2, ""), BOTTOMS, inputs)
    assert actual == pytest.approx(want, rel=1e-5)
    assert actual != pytest.approx(_loss(LOSS.format(3, 2, ""), BOTTOMS[:22], inputs), rel=1e-3)


def test_sure_background_teaches_nothing():
    inputs = _loss_inputs()
    inputs["seen"][...] = 1
    everything = _loss(LOSS.format(3, 99, "objectness_score: 0.5"), BOTTOMS, inputs)
    moved = _refined(inputs["priors"], inputs["moves"].reshape(-1, 4), "CORNER")
    matches = multibox(
        inputs["loc"], inputs["conf"], moved, inputs["truths"], classes=3, ratio=0,
        normalization="NONE",
    )  # fmt: skip
    inputs["seen"][...] = 0
    only_objects = _loss(LOSS.format(3, 99, "objectness_score: 0.5"), BOTTOMS, inputs)
    count = matches / only_objects
    assert count == pytest.approx(round(count), rel=1e-5)
    assert everything > only_objects * 1.01


def test_the_first_stage_knows_objects_of_one_class():
    inputs = _loss_inputs()
    inputs["conf"] = inputs["conf"][:, : PRIORS * 2]
    two, one = dict(inputs), dict(inputs)
    one["truths"] = inputs["truths"].copy()
    one["truths"][..., 1] = 1
    names = "loc conf priors truths"
    options = LOSS.format(2, 3, "objectness_score: 0.01")
    assert _loss(options, names, two) == pytest.approx(_loss(options, names, one), rel=1e-6)
    with pytest.raises(LayerError, match="has the label 2"):
        _loss(LOSS.format(2, 3, ""), names, two)


def test_gradients():
    inputs = _loss_inputs()
    text = biased("loc") + layer_text(
        "MultiBoxLoss", LOSS.format(3, 99, ""), "locb conf priors truths seen moves"
    )
    check_gradients(text, inputs, of=[], force=False, tolerance=2e-2)


def test_first_stages_that_do_not_fit():
    inputs = _loss_inputs()
    inputs["moves"] = inputs["moves"][:, :8]
    with pytest.raises(LayerError, match="need 48 locations of the first stage; their shape is"):
        _loss(LOSS.format(3, 2, ""), BOTTOMS, inputs)
