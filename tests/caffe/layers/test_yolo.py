"""YOLOv2 and YOLOv3: boxes from maps, and what their losses teach, against plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import biased
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import build, draw, same

V2 = [1.0, 2.0, 3.0, 1.5]
V3 = [10, 13, 40, 30, 60, 90, 20, 25]
LABELS = np.zeros((2, 4, 5), np.float32)
LABELS[0, :2] = [[1, 0.3, 0.6, 0.4, 0.3], [2, 0.8, 0.1, 0.2, 0.5]]
LABELS[1, :1] = [[0, 0.5, 0.5, 0.9, 0.8]]


def numbers(name: str, values: Any) -> str:
    return " ".join(f"{name}: {value}" for value in values)


def sig(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def iou(a: Any, b: Any) -> float:
    low = [max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2) for i in (0, 1)]
    high = [min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) for i in (0, 1)]
    common = max(high[0] - low[0], 0) * max(high[1] - low[1], 0)
    return float(common / (a[2] * a[3] + b[2] * b[3] - common))


def cells(x: Any, boxes: int) -> Any:
    """Image, box, row, column, and the values there."""
    length = x.shape[1] // boxes
    for n, a, i, j in np.ndindex(x.shape[0], boxes, *x.shape[2:]):
        yield n, a, i, j, [float(v) for v in x[n, a * length : (a + 1) * length, i, j]]


def box(values: Any, i: int, j: int, size: Any, anchor: Any) -> Any:
    wide, high = size[1], size[0]
    return (
        (j + sig(values[0])) / wide,
        (i + sig(values[1])) / high,
        math.exp(values[2]) * anchor[0] / wide,
        math.exp(values[3]) * anchor[1] / high,
    )


def survivors(found: Any, images: int, threshold: float) -> Any:
    rows = []
    for n in range(images):
        kept: list[Any] = []
        for score, label, where, _ in sorted((f for f in found if f[3] == n), key=lambda f: -f[0]):
            if all(iou(where, other) < threshold for _, _, other in kept):
                kept.append((score, label, where))
        rows += [
            [n, label, score, w[0] - w[2] / 2, w[1] - w[3] / 2, w[0] + w[2] / 2, w[1] + w[3] / 2]
            for score, label, w in kept
        ]
    return np.array(rows)


def test_yolov2_boxes() -> None:
    x = draw(2, 2 * 8, 3, 4)
    options = (
        "num_classes: 3 num_box: 2 confidence_threshold: 0.3 nms_threshold: 0.3 "
        f"{numbers('biases', V2)}"
    )
    made = build(
        layer_text("YoloDetectionOutput", f"yolo_detection_output_param {{ {options} }}"),
        {"x": x},
        force=False,
    )
    made.forward()
    found = []
    for n, a, i, j, values in cells(x, 2):
        e = [math.exp(v) for v in values[5:]]
        score = sig(values[4]) * max(e) / sum(e)
        if score >= 0.3:
            found.append((score, e.index(max(e)) + 1, box(values, i, j, (3, 4), V2[2 * a :]), n))
    want = survivors(found, 2, 0.3)
    assert len(want) > 4
    same(made.blobs["y"].data[0, 0], want, 1e-4, 1e-5)


def test_yolov3_boxes() -> None:
    inputs = {"a": draw(2, 2 * 7, 2, 3), "b": draw(2, 2 * 7, 4, 6, seed=1)}
    options = (
        f"num_classes: 2 num_box: 2 confidence_threshold: 0.5 nms_threshold: 0.4 mask_group_num: 2 "
        f"{numbers('biases', V3)} {numbers('mask', [2, 1, 0, 3])} "
        "anchors_scale: 32 anchors_scale: 16"
    )
    made = build(
        layer_text(
            "Yolov3DetectionOutput", f"yolov3_detection_output_param {{ {options} }}", "a b"
        ),
        inputs,
        force=False,
    )
    made.forward()
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
    same(made.blobs["y"].data[0, 0], want, 1e-4, 1e-5)


def test_no_box_is_sure_enough() -> None:
    options = f"num_classes: 3 num_box: 2 confidence_threshold: 2 {numbers('biases', V2)}"
    made = build(
        layer_text("YoloDetectionOutput", f"yolo_detection_output_param {{ {options} }}"),
        {"x": draw(2, 16, 2, 2)},
        force=False,
    )
    made.forward()
    assert made.blobs["y"].data[0, 0].tolist() == [[0] + [-1] * 6, [1] + [-1] * 6]


def iou_inside(a: Any, b: Any) -> float:
    """Of the parts inside the image: what is outside has no size."""
    sides = [
        [(max(t[i] - t[i + 2] / 2, 0), min(t[i] + t[i + 2] / 2, 1)) for i in (0, 1)] for t in (a, b)
    ]
    sizes = [math.prod(max(high - low, 0) for low, high in box) for box in sides]
    common = math.prod(
        max(min(one[1], two[1]) - max(one[0], two[0]), 0) for one, two in zip(*sides, strict=True)
    )
    return common / (sizes[0] + sizes[1] - common) if common else 0


def region(x: Any, labels: Any, fork: str, warm: bool = False, rescore: bool = True) -> Any:
    """What a fork has each value lose (region_loss_layer.cpp), value by value."""
    size, out = x.shape[2:], np.zeros_like(x, np.float64)
    alike = iou_inside if fork == "yolov2" else iou
    truths = [[row for row in rows if row[1]] for rows in labels]
    for n, a, i, j, v in cells(x, 2):
        o, own = sig(v[4]), [sig(v[0]), sig(v[1])]
        near = max((alike(box(v, i, j, size, V2[2 * a :]), t[1:]) for t in truths[n]), default=0)
        to = out[n, a * 8 : a * 8 + 8, i, j]
        to[4] = 0 if near > 0.3 else 0.5 * o * o * (1 - o)
        if warm:
            for k in (0, 1):
                to[k] = -0.01 * (0.5 - own[k]) * own[k] * (1 - own[k])
                to[2 + k] = -0.01 * (0 - v[2 + k])
    for n, rows in enumerate(truths):
        for label, cx, cy, w, h in rows:
            i, j = int(cy * size[0]), int(cx * size[1])
            fits = [
                alike((0, 0, V2[2 * a] / size[1], V2[2 * a + 1] / size[0]), (0, 0, w, h))
                for a in (0, 1)
            ]
            a = fits.index(max(fits))
            v = x[n, a * 8 : a * 8 + 8, i, j].astype(float)
            to, o, wanted = out[n, a * 8 : a * 8 + 8, i, j], sig(v[4]), 1.0
            scale = 2.0
            if fork == "mobilenet" and rescore:
                wanted = iou(box(v, i, j, size, V2[2 * a :]), (cx, cy, w, h))
            elif fork == "mobilenet":
                scale = 2 * (2 - w * h)
            for k, place in ((0, cx * size[1] - j), (1, cy * size[0] - i)):
                s = sig(v[k])
                to[k] = -scale * (place - s) * s * (1 - s)
            for k, real in ((0, w * size[1]), (1, h * size[0])):
                change = math.log(real / V2[2 * a + k]) - v[2 + k]
                if fork == "intel":
                    change = min(max(change, -1), 1)
                to[2 + k] = -scale * change
            to[4] = -5 * (2 * (1 - o) ** 3 if fork == "intel" else wanted - o) * o * (1 - o)
            e = np.exp(v[5:])
            to[5:] = -((np.arange(3) == label) - e / e.sum())
    return out


REGION = "num_class: 3 num: 2 object_scale: 5 coord_scale: 2 thresh: 0.3 " + numbers("biases", V2)


def padded(rows: int) -> Any:
    labels = np.zeros((2, 1, rows, 5), np.float32)
    labels[:, 0, :4] = LABELS
    return labels


def annotated() -> Any:
    rows = [
        [n, row[0] + 1, 0, row[1] - row[3] / 2, row[2] - row[4] / 2,
         row[1] + row[3] / 2, row[2] + row[4] / 2, 0]
        for n in range(2) for row in LABELS[n] if row[3]
    ]  # fmt: skip
    return np.array([*rows, [-1] * 8], np.float32)[None, None]


@pytest.mark.parametrize(
    ("labels", "fork", "more", "images"),
    [
        (padded(30).reshape(2, 150), "yolov2", "", 1),
        (LABELS, "yolov2", "fork: CAFFE_YOLOV2", 1),
        (padded(300), "mobilenet", "", 2),
        (padded(300), "mobilenet", "rescore: 0", 2),
        (LABELS, "mobilenet", "fork: MOBILENET_YOLO", 2),
        (annotated(), "intel", "", 1),
        (LABELS, "intel", "fork: INTEL", 1),
    ],
)
def test_region_loss(labels: Any, fork: str, more: str, images: int) -> None:
    """Each fork's loss, told apart by the labels' shape or by name; overlaps differ by the clip."""
    x = draw(2, 16, 3, 4) * 0.7
    text = f"region_loss_param {{ {REGION} {more} }}"
    made = build(
        biased("x") + layer_text("RegionLoss", text, "xb l"), {"x": x, "l": labels}, force=False
    )
    made.forward()
    want = region(x, LABELS, fork, warm=fork == "yolov2", rescore="rescore" not in more)
    same(made.blobs["y"].data, np.float32((want**2).sum() / images), 1e-4)
    made.backward()
    same(made.blobs["xb"].diff, want / 2, 1e-4, 1e-5)


def test_forks_of_the_region_loss_differ() -> None:
    """The cases above would not notice one fork's loss in another's place otherwise."""
    x = draw(2, 16, 3, 4) * 0.7
    found = [region(x, LABELS, fork) for fork in ("yolov2", "mobilenet", "intel")]
    found.append(region(x, LABELS, "mobilenet", rescore=False))
    for one in range(4):
        for two in range(one):
            assert np.abs(found[one] - found[two]).max() > 0.01
    clipped, whole = (region(x, LABELS, fork)[:, [4, 12]] for fork in ("yolov2", "mobilenet"))
    assert ((clipped == 0) != (whole == 0)).any()


def test_anchors_draw_for_12800_images() -> None:
    """caffe-yolov2 counts whole batches: 12800 / N of them."""
    x = np.repeat(draw(1, 16, 1, 1), 4300, 0)
    labels = np.zeros((4300, 150), np.float32)
    made = build(
        layer_text("RegionLoss", f"region_loss_param {{ {REGION} }}", "x l"),
        {"x": x, "l": labels},
        force=False,
    )
    losses = []
    for _ in range(3):
        made.forward()
        losses.append(float(made.blobs["y"].data))
    warm = (region(x[:1], labels[:1].reshape(1, 30, 5), "yolov2", warm=True) ** 2).sum() * 4300
    cold = (region(x[:1], labels[:1].reshape(1, 30, 5), "yolov2") ** 2).sum() * 4300
    assert losses == pytest.approx([warm, warm, cold], rel=1e-4)


def test_labels_that_tell_no_fork() -> None:
    with pytest.raises(LayerError, match=r"4 true boxes an image.*dialect=\"caffe-yolov2\""):
        build(
            layer_text("RegionLoss", f"region_loss_param {{ {REGION} }}", "x l"),
            {"x": draw(2, 16, 3, 4), "l": LABELS},
        )


def third(x: Any, labels: Any) -> Any:
    """What MobileNet-YOLO has each value lose (yolov3_layer.cpp, MSE), value by value."""
    size, out, mask = x.shape[2:], np.zeros_like(x, np.float64), [2, 1]
    truths = [[row for row in rows if row[1]] for rows in labels]
    for n, a, i, j, v in cells(x, 2):
        anchor = [V3[2 * mask[a]] / 16, V3[2 * mask[a] + 1] / 16]
        near = max((iou(box(v, i, j, size, anchor), t[1:]) for t in truths[n]), default=0)
        out[n, a * 8 + 4, i, j] = 0 if near > 0.6 else sig(v[4])
    for n, rows in enumerate(truths):
        for label, cx, cy, w, h in rows:
            i, j = int(cy * size[0]), int(cx * size[1])
            pixels = (16 * size[1], 16 * size[0])
            fits = [
                iou((0, 0, V3[2 * k] / pixels[0], V3[2 * k + 1] / pixels[1]), (0, 0, w, h))
                for k in range(4)
            ]
            best = fits.index(max(fits))
            for k in {best, *(k for k in range(4) if fits[k] > 0.5)} & set(mask):
                a = mask.index(k)
                v, to = x[n, a * 8 : a * 8 + 8, i, j].astype(float), out[n, a * 8 : a * 8 + 8, i, j]
                scale = 2 - w * h
                to[0] = -scale * (cx * size[1] - j - sig(v[0]))
                to[1] = -scale * (cy * size[0] - i - sig(v[1]))
                to[2] = -scale * (math.log(w * pixels[0] / V3[2 * k]) - v[2])
                to[3] = -scale * (math.log(h * pixels[1] / V3[2 * k + 1]) - v[3])
                to[4] = -(1 - sig(v[4]))
                for c in range(3):
                    wanted = (1.0 if c == label else 0.0) * 0.9 + 0.05
                    to[5 + c] = -(wanted - sig(v[5 + c]))
    return out


def test_yolov3_loss() -> None:
    x = draw(2, 16, 4, 5) * 0.7
    options = (
        "yolov3_param { num_class: 3 num: 2 coord_scale: 1 thresh: 0.6 anchors_scale: 16 "
        f"{numbers('biases', V3)} mask: 2 mask: 1 }}"
    )
    made = build(
        biased("x") + layer_text("Yolov3", options, "xb l"), {"x": x, "l": LABELS}, force=False
    )
    made.forward()
    want = third(x, LABELS)
    same(made.blobs["y"].data, np.float32((want**2).sum() / 2), 1e-4)
    made.backward()
    same(made.blobs["xb"].diff, want / 2, 1e-4, 1e-5)


def test_boxes_judged() -> None:
    """One box is right, one doubles it, and classes without a true box are wrong."""
    x = np.full((1, 16, 2, 2), -9, np.float32)
    options = (
        f"eval_detection_param {{ num_class: 3 num_object: 2 nms: 0.5 {numbers('biases', V2)} }}"
    )
    x[0, [0, 1], 0, 0] = 0
    x[0, [2, 3], 0, 0] = 0
    x[0, 4, 0, 0] = 5
    x[0, 6, 0, 0] = 9
    labels = np.zeros((1, 3, 5), np.float32)
    labels[0, 0] = [1, 0.25, 0.25, 0.5, 1.0]
    made = build(layer_text("EvalDetection", options, "x l"), {"x": x, "l": labels}, force=False)
    made.forward()
    y = made.blobs["y"].data[0]
    assert y[:3].tolist() == [0, 1, 0]
    rows = y[3:].reshape(-1, 4)
    first = rows[(rows[:, 0] == 1) & (rows[:, 2] == 1)]
    assert len(first) == 1
    assert first[0, 1] == pytest.approx(sig(5), abs=1e-3)
    assert (rows[rows[:, 0] != 1][:, 2] == 0).all()
    # AnnotatedData's rows of the same box: label 2 of 1, corners, and one of no image.
    annotated = np.array([[0, 2, 0, 0, -0.25, 0.5, 0.75, 0], [-1] * 8], np.float32)
    inputs = {"x": x, "l": annotated.reshape(1, 1, 2, 8), "i": np.zeros((1, 3, 4, 4))}
    other = build(layer_text("EvalDetection", options, "x l i"), inputs, force=False)
    other.forward()
    same(other.blobs["y"].data, made.blobs["y"].data)


def judged(x: Any, labels: Any, threshold: float, nms: float) -> Any:
    """caffe-yolov2's rows of one image (eval_detection_layer.cpp), box by box."""
    found = []
    for _, a, i, j, v in cells(x[None], 2):
        e = [math.exp(value) for value in v[5:]]
        score = sig(v[4]) * max(e) / sum(e)
        found.append((score, e.index(max(e)), box(v, i, j, x.shape[1:], V2[2 * a :])))
    kept: list[Any] = []
    for one in sorted(found, key=lambda f: -f[0]) if nms >= 0 else []:
        if all(iou_inside(one[2], other[2]) < nms for other in kept):
            kept.append(one)
    rows, taken = [], set()
    for score, label, where in sorted((k for k in kept if k[0] >= 0.005), key=lambda f: f[1]):
        fits = [(iou_inside(where, t[1:]), k) for k, t in enumerate(labels) if t[0] == label]
        best = max(fits, key=lambda f: f[0], default=(-1.0, -1))
        right = best[0] >= threshold and best[1] not in taken
        wrong = not fits or (best[0] >= threshold and not right)
        if best[0] >= threshold:
            taken.add(best[1])
        rows.append([label, score, right, wrong])
    return np.array(rows, np.float32).reshape(-1, 4)


@pytest.mark.parametrize("nms", [0.3, 0.6, None])
def test_boxes_judged_as_in_the_fork(nms: float | None) -> None:
    """Overlaps inside the image, no scores below 0.005; without nms no boxes at all."""
    x = draw(2, 16, 4, 4, seed=3) * 1.5
    x[:, 4] -= 3
    text = f"num_class: 3 num_object: 2 threshold: 0.2 {numbers('biases', V2)}"
    text += "" if nms is None else f" nms: {nms}"
    labels = padded(30).reshape(2, 150)
    made = build(
        layer_text("EvalDetection", f"eval_detection_param {{ {text} }}", "x l"),
        {"x": x, "l": labels},
        force=False,
    )
    made.forward()
    for n, (got, real) in enumerate(zip(made.blobs["y"].data, LABELS, strict=True)):
        rows = judged(x[n], [row for row in real if row[1]], 0.2, -1 if nms is None else nms)
        assert got[:3].tolist() == [[0, 1, 1], [1, 0, 0]][n]
        same(got[3 : 3 + rows.size].reshape(-1, 4), rows, 1e-4, 1e-5)
        assert not got[3 + rows.size :].any()
        assert bool(len(rows)) == (nms is not None)


@pytest.mark.parametrize(
    ("row", "message"),
    [([7, 0.5, 0.5, 0.5, 0.5], r"a true box is \(7, 0.5"), ([1, 1.5, 0.5, 0.5, 0.5], "do not fit")],
)
def test_true_boxes_that_do_not_fit(row: Any, message: str) -> None:
    labels = np.zeros((1, 30, 5), np.float32)
    labels[0, 0] = row
    made = build(
        layer_text("RegionLoss", f"region_loss_param {{ {REGION} }}", "x l"),
        {"x": draw(1, 16, 3, 4), "l": labels},
        force=False,
    )
    with pytest.raises(LayerError, match=message):
        made.forward()
