"""The layers that Cascade R-CNN's nets train by, against plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import LayerError
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import build, draw, same
from tests.caffe.layers.test_cascade import MEANS, REG, STDS, iou, moved

ANCHORS = [(30, 20), (16, 40)]
STRIDE = 8


def labels(seed: int = 0) -> Any:
    """Two images, two anchors: classes 0 to 2, boxes near their places, overlaps."""
    rng = np.random.default_rng(seed)
    made = np.zeros((4, 6, 3, 5), np.float32)
    made[:, 0] = rng.integers(-2, 3, (4, 3, 5)).clip(0)
    made[:, 1] = (np.arange(5) + 0.5) * STRIDE + rng.normal(0, 3, (4, 3, 5))
    made[:, 2] = (np.arange(3)[:, None] + 0.5) * STRIDE + rng.normal(0, 3, (4, 3, 5))
    made[:, 3:5] = rng.uniform(10, 40, (4, 2, 3, 5))
    made[:, 5] = np.where(made[:, 0] > 0, 0.8, rng.uniform(0, 1, (4, 3, 5)))
    return made


def group_options(kind: str, more: str, classes: int = 3) -> str:
    fields = " ".join(f"field_w: {w} field_h: {h}" for w, h in ANCHORS)
    return f"{kind} {{ cls_num: {classes} stride: {STRIDE} {fields} {more} }} {REG}"


def softmax(scores: Any) -> Any:
    powers = np.exp(scores.astype(np.float64) - scores.max())
    return powers / powers.sum()


def wanted_delta(row: Any, anchor: Any, i: int, j: int) -> list[float]:
    """What makes the label's box of an anchor."""
    x = (row[1] - (j + 0.5) * STRIDE) / anchor[0]
    y = (row[2] - (i + 0.5) * STRIDE) / anchor[1]
    w, h = math.log(max(row[3], 2) / anchor[0]), math.log(max(row[4], 2) / anchor[1])
    return [(v - m) / s for v, m, s in zip((x, y, w, h), MEANS, STDS, strict=True)]


def all_that_learn(truth: Any, least: float = 0.5) -> list[Any]:
    """Places that may learn: of an image those with an object, and those without."""
    found: list[Any] = [([], []) for _ in range(len(truth) // 2)]
    for n, i, j in np.ndindex(len(truth), *truth.shape[2:]):
        if truth[n, 0, i, j] > 0:
            found[n // 2][0].append((n, i, j))
        elif truth[n, 5, i, j] < least:
            found[n // 2][1].append((n, i, j))
    return found


def loss_of(
    inputs: Any, kept: Any, smooth: bool = True, weights: Any = None, classes: int = 3
) -> tuple[float, float]:
    """The classes' loss and the boxes', of the places that are kept."""
    conf, boxes = [], []
    for n, i, j in kept:
        row = inputs["t"][n, :, i, j]
        label = min(int(row[0]), classes - 1)
        weight = 1 if weights is None else weights[label > 0]
        conf.append(-math.log(softmax(inputs["s"][n, :, i, j])[label]) * weight)
        if row[0] > 0:
            delta = wanted_delta(row, ANCHORS[n % 2], i, j)
            for got, want in zip(inputs["d"][n, :, i, j], delta, strict=True):
                away = abs(float(got) - want)
                boxes.append(away - 0.5 if smooth and away >= 1 else away * away / 2)
    return sum(conf) / len(conf), sum(boxes) / len(boxes)


def group_inputs(classes: int = 3) -> dict[str, Any]:
    return {
        "s": draw(4, classes, 3, 5),
        "d": draw(4, 4, 3, 5, seed=1),
        "t": labels(),
    }


@pytest.mark.parametrize("kind", ["Smooth_L1", "Euclidean_L2"])
@pytest.mark.parametrize("mining", ["bootstrap", "all"])
def test_the_loss_of_anchors(kind: str, mining: str) -> None:
    inputs = group_inputs()
    how = "bootstrap" if mining == "bootstrap" else "random"
    multiple = 1 if mining == "bootstrap" else 99
    options = f"bg_multiple: {multiple} neg_mining_type: '{how}' bbox_loss_type: '{kind}' lambda: 2"
    text = layer_text(
        "DetectionGroupLoss", group_options("detection_group_loss_param", options), "s d t"
    )
    made = build(text, inputs)
    made.forward()
    kept = []
    for objects, others in all_that_learn(inputs["t"]):
        error = {at: -math.log(softmax(inputs["s"][at[0], :, at[1], at[2]])[0]) for at in others}
        worst = sorted(others, key=lambda at: -error[at])
        kept += objects + worst[: max(len(objects) * multiple, 5)]
    conf, boxes = loss_of(inputs, kept, kind == "Smooth_L1")
    same(made.blobs["y"].data.ravel(), [conf + 2 * boxes, 2 * boxes], 1e-4)
    made.blobs["y"].diff[...] = [[[[0.5, 7]]]]
    made.backward()
    for name in "sd":
        check_slope(made, name, 0.5)


def check_slope(made: Any, name: str, weight: float, step: float = 5e-3) -> None:
    """Differences of the first value of the top, as backward says."""
    blob = made.blobs[name]
    got = np.array(blob.diff)
    rng = np.random.default_rng(2)
    for place in rng.permutation(np.argwhere(got != 0))[:25]:
        at = tuple(place)
        kept = float(blob.data[at])
        found = []
        for move in (step, -step):
            blob.data[at] = kept + move
            made.forward()
            found.append(float(made.blobs["y"].data.ravel()[0]))
        blob.data[at] = kept
        want = weight * (found[0] - found[1]) / (2 * step)
        assert abs(got[at] - want) < 0.02 * max(abs(want), 0.01), (name, at)


def test_a_batch_of_anchors_by_chance() -> None:
    """Of each image so many objects and so much background; both kinds weigh as they should."""
    inputs = group_inputs(2)
    options = "batch_size: 6 bg_multiple: 2 objectness: true pos_neg_weighted: true"
    text = layer_text(
        "DetectionGroupLoss", group_options("detection_group_loss_param", options, 2), "s d t"
    )
    chosen = []
    for seed in (3, 3, 4):
        caffe.set_random_seed(seed)
        made = build(text, inputs)
        made.forward()
        made.blobs["y"].diff[...] = 1
        made.backward()
        kept = [tuple(at) for at in np.argwhere((made.blobs["s"].diff != 0).all(1))]
        for image in (0, 1):
            own = [inputs["t"][n, 0, i, j] > 0 for n, i, j in kept if n // 2 == image]
            assert (sum(own), len(own)) == (2, 6)
        conf, boxes = loss_of(inputs, kept, weights=(8 / 8, 4 / 4), classes=2)
        same(made.blobs["y"].data.ravel(), [conf + boxes, boxes], 1e-4)
        chosen.append(kept)
    assert chosen[0] == chosen[1] != chosen[2]


def test_bounded_deltas() -> None:
    inputs = group_inputs()
    inputs["d"] *= 20
    options = "bg_multiple: 99 field_xyr: 2 field_whr: 3"
    text = layer_text(
        "DetectionGroupLoss", group_options("detection_group_loss_param", options), "s d t"
    )
    made = build(text, inputs)
    made.forward()
    kept = [at for both in all_that_learn(inputs["t"]) for some in both for at in some]
    bounds = [((0.01 + 0) / 2, 0.1, 0.5), ((0 + 0.02) / 2, 0.2, math.log(3))]
    told = {**inputs, "d": inputs["d"].astype(np.float64)}
    for part, (mean, std, most) in zip((slice(0, 2), slice(2, 4)), bounds, strict=True):
        told["d"][:, part] = told["d"][:, part].clip((-most - mean) / std, (most - mean) / std)
    conf, boxes = loss_of(told, kept)
    same(made.blobs["y"].data.ravel(), [conf + boxes, boxes], 1e-4)


def test_settings_of_anchors() -> None:
    inputs = group_inputs()
    for more, says in (
        ("batch_size: 0", "batch_size must be positive, or -1; it is 0"),
        ("neg_mining_type: 'x'", "neg_mining_type 'x' must be one of random, bootstrap, mixture"),
        ("objectness: true", "2 with objectness; it is 3"),
        ("field_h: 2", "a field_h for each field_w"),
    ):
        with pytest.raises(LayerError, match=says):
            build(
                layer_text(
                    "DetectionGroupLoss", group_options("detection_group_loss_param", more), "s d t"
                ),
                inputs,
            )
    text = layer_text(
        "DetectionGroupLoss", group_options("detection_group_loss_param", ""), "s d t"
    )
    made = build(text, inputs)
    made.blobs["t"].data[0, 0, 0, 0] = 3
    with pytest.raises(LayerError, match="a label is of class 0 or 3; cls_num is 3"):
        made.forward()


def test_the_accuracy_of_anchors() -> None:
    inputs = group_inputs()
    options = group_options("detection_group_accuracy_param", "field_xyr: 1 field_whr: 4")
    made = build(layer_text("DetectionGroupAccuracy", options, "s d t", "y z"), inputs, force=False)
    made.forward()
    right, real, shared = [], [], []
    for objects, others in all_that_learn(inputs["t"]):
        for n, i, j in objects + others:
            row = inputs["t"][n, :, i, j]
            right.append(inputs["s"][n, :, i, j].argmax() == row[0])
            if row[0] > 0:
                real.append(right[-1])
                known = zip(inputs["d"][n, :, i, j], STDS, MEANS, strict=True)
                d = [float(v) * s + m for v, s, m in known]
                wide, high = ANCHORS[n % 2]
                x = min(max(d[0], -1), 1) * wide + (j + 0.5) * STRIDE
                y = min(max(d[1], -1), 1) * high + (i + 0.5) * STRIDE
                w = wide * math.exp(min(max(d[2], -math.log(4)), math.log(4)))
                h = high * math.exp(min(max(d[3], -math.log(4)), math.log(4)))
                boxes = [
                    (cx - bw / 2, cy - bh / 2, cx + bw / 2 - 1, cy + bh / 2 - 1)
                    for cx, cy, bw, bh in ((x, y, w, h), row[1:5])
                ]
                shared.append(iou(*boxes))
    same(made.blobs["y"].data.ravel(), [np.mean(right), np.mean(real)], 1e-5)
    same(made.blobs["z"].data.ravel(), [np.mean(shared)], 1e-4)
    made.blobs["t"].data[:, 0], made.blobs["t"].data[:, 5] = 0, 1
    made.forward()
    assert made.blobs["y"].data.ravel().tolist() == [-1, -1]
    assert made.blobs["z"].data.ravel().tolist() == [-1]


@pytest.mark.parametrize("aware", [True, False])
def test_how_much_better_boxes_fit(aware: bool) -> None:
    rng = np.random.default_rng(0)
    boxes = np.concatenate([np.zeros((5, 1)), rng.uniform(0, 30, (5, 2))], 1)
    boxes = np.concatenate([boxes, boxes[:, 1:] + rng.uniform(10, 40, (5, 2))], 1)
    truth = np.concatenate([[[1], [2], [0], [2], [1]], boxes[:, 1:] + 3, np.full((5, 1), 0.7)], 1)
    truth[4, 5] = 1
    inputs = {"d": draw(5, 12 if aware else 8), "r": boxes, "t": truth}
    reg = REG.replace("false", "true") if aware else REG
    made = build(layer_text("BboxAccuracy", reg, "d r t", "y z"), inputs, force=False)
    made.forward()
    after, before = [], []
    for n in (0, 1, 3):
        label = int(truth[n, 0]) if aware else 1
        delta = inputs["d"][n, 4 * label : 4 * label + 4]
        after.append(iou(moved(delta, boxes[n, 1:]), truth[n, 1:5]))
        before.append(iou(boxes[n, 1:], truth[n, 1:5]))
    same(made.blobs["y"].data.ravel(), [np.mean(after)], 1e-4)
    same(made.blobs["z"].data.ravel(), [np.mean(before)], 1e-4)
    made.blobs["t"].data[:, 0] = 0
    made.forward()
    assert made.blobs["y"].data.ravel().tolist() == [-1]


TRUTH = np.array(
    [
        [0, 10, 10, 40, 50, 2, 0, 0],
        [0, 60, 60, 90, 99, 1, 1, 0],
        [1, 5, 5, 25, 25, 1, 0, 1],
        [-1] * 8,
    ],
    np.float32,
)
PROPOSED = np.array(
    [
        [0, 12, 11, 42, 49],  # fits the first true box
        [0, 61, 60, 90, 98],  # fits one that is ignored
        [0, 30, 30, 60, 60],  # overlaps a little
        [1, 80, 80, 95, 95],  # overlaps nothing
        [1, 5, 6, 25, 27],
        [1, 12, 12, 40, 40],
    ],
    np.float32,
)
TOPS = "b l t i o m w"


def targets(options: str, **more: Any) -> Any:
    text = f"cls_num: 3 num_img_per_batch: 2 bg_thr_lw: 0.05 {options}"
    inputs = {"p": PROPOSED, "g": TRUTH, **more}
    made = build(
        layer_text("ProposalTarget", f"proposal_target_param {{ {text} }} {REG}", "p g", TOPS),
        inputs,
        force=False,
    )
    made.forward()
    return {
        name: np.array(made.blobs[name].data).reshape(len(made.blobs[name].data), -1)
        for name in TOPS.split()
    }


def test_boxes_to_train_on() -> None:
    found = targets("batch_size: -1")
    boxes = [PROPOSED[0], PROPOSED[4], TRUTH[0, :5], TRUTH[2, :5], PROPOSED[2], PROPOSED[5]]
    same(found["b"], np.array(boxes))
    assert found["l"].ravel().tolist() == [2, 1, 2, 1, 0, 0]
    for n, (label, of) in enumerate(((2, 0), (1, 2), (2, 0), (1, 2))):
        real, box = TRUTH[of, 1:5], found["b"][n, 1:]
        sizes = [(b[2] - b[0] + 1, b[3] - b[1] + 1) for b in (box, real)]
        delta = [
            (real[0] + sizes[1][0] / 2 - box[0] - sizes[0][0] / 2) / sizes[0][0],
            (real[1] + sizes[1][1] / 2 - box[1] - sizes[0][1] / 2) / sizes[0][1],
            math.log(sizes[1][0] / sizes[0][0]),
            math.log(sizes[1][1] / sizes[0][1]),
        ]
        want = [0] * 4 + [(v - m) / s for v, m, s in zip(delta, MEANS, STDS, strict=True)]
        same(found["t"][n], want, 1e-4, 1e-5)
        assert found["i"][n].tolist() == found["o"][n].tolist() == [0] * 4 + [1] * 4
        same(found["m"][n], [label, *real, iou(box, real)], 1e-5)
    for name in "tiom":
        assert (found[name][4:] == 0).all()
    # Objects are given a quarter of the weight.
    same(found["w"].ravel(), [6 * 0.25 / 4] * 4 + [6 * 0.75 / 2] * 2)


def test_a_batch_of_boxes() -> None:
    found = targets("batch_size: 5 fg_fraction: 0.4 append_gtbox: false iou_weighted: true")
    # What overlaps nothing fills the batch up.
    assert found["l"].ravel().tolist() == [2, 1, 0, 0, 0]
    same(found["b"][4], PROPOSED[3])
    shared = found["m"][:2, 5]
    same(found["w"].ravel(), [*(5 * 0.4 * shared / shared.sum()), 1, 1, 1], 1e-5)
    found = targets("batch_size: 3 fg_fraction: 0.4 bbox_thr_hg: 0.85")
    assert sorted(found["l"].ravel() > 0) == [False, False, True]
    counted = found["m"][:, 5] <= 0.85
    assert ((found["i"].sum(1) > 0) == (counted & (found["l"].ravel() > 0))).all()
    found = targets("batch_size: 4 pickup_discard: false append_gtbox: false fg_fraction: 0.25")
    assert len(found["b"]) == 3


def test_a_box_that_stands_in() -> None:
    nothing = np.full((1, 8), -1, np.float32)
    size = "img_width: 200 img_height: 100"
    found = targets(f"batch_size: 4 pickup_discard: false {size}", g=nothing)
    image, *box = found["b"][0]
    assert len(found["b"]) == 1
    assert image in (0, 1)
    assert 0 <= box[0] < box[2] < 232
    assert found["l"].tolist() == [[0]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"g": TRUTH + np.eye(1, 8) * 2}, "a box is of image"),
        ({"g": TRUTH * (1 - np.eye(1, 8, 5))}, "a true box is of class"),
    ],
)
def test_boxes_that_do_not_fit(change: Any, says: str) -> None:
    with pytest.raises(LayerError, match=says):
        targets("batch_size: -1", **change)


def test_the_boxes_with_the_largest_losses() -> None:
    losses = np.array([0.5, 3, 1, 2, 0.1, 4, 0.2], np.float32)
    boxes = np.concatenate([[[0], [0], [0], [0], [1], [1], [0]], draw(7, 4)], 1)
    inputs = {"s": losses, "r": boxes, "x": draw(7, 2, 3, 1)}
    options = "hard_mining_param { num_image: 2 num_roi_per_image: 3 }"
    made = build(layer_text("HardMining", options, "s r x", "b y"), inputs, force=False)
    made.forward()
    # Rows 1, 3 and 2 of image 0, both of image 1, and row 0 to fill up.
    same(made.blobs["y"].data, inputs["x"][[0, 1, 2, 3, 4, 5]])
    same(made.blobs["b"].data.reshape(6, 5), boxes[[0, 1, 2, 3, 4, 5]])
    made.blobs["s"].data[6] = 9
    made.forward()
    same(made.blobs["y"].data, inputs["x"][[1, 2, 3, 4, 5, 6]])
    made.blobs["r"].data[6, 0] = 2
    with pytest.raises(LayerError, match="a box is of image 2; num_image is 2"):
        made.forward()


@pytest.mark.parametrize(
    ("options", "rows"),
    [("high_scale: 20", [0]), ("low_scale: 20 high_scale: 60", [1, 3]), ("low_scale: 60", [2]),
     ("low_scale: 900", [2]), ("", [0, 1, 2, 3])],
)  # fmt: skip
def test_boxes_of_a_range_of_sizes(options: str, rows: list[int]) -> None:
    boxes = [[0, 0, 0, 9, 9], [0, 5, 5, 44, 24], [1, 0, 0, 99, 199], [1, 2, 2, 41, 41]]
    inputs = {"r": np.array(boxes, np.float32), "x": draw(4, 3)}
    made = build(
        layer_text("ScaleRoute", f"scale_route_param {{ {options} }}", "r x", "b y"),
        inputs,
        force=False,
    )
    made.forward()
    same(made.blobs["y"].data.reshape(-1, 3), inputs["x"][rows])
    same(made.blobs["b"].data.reshape(-1, 5), inputs["r"][rows])
