"""MS-CNN's layers against loops as slow as the paper is long, and differences."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.forks.cascade_rcnn.hosts.detection_loss import chosen
from tests.caffe.gradient import biased, check_gradients
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import build, draw, same

MEANS, STDS = [0.02, -0.01, 0.1, 0.05], [0.1, 0.12, 0.2, 0.25]
SCALING = (
    "bbox_reg_param { "
    + " ".join(f"bbox_mean: {one}" for one in MEANS)
    + " "
    + " ".join(f"bbox_std: {one}" for one in STDS)
    + " }"
)
FIELD, STRIDE = (24, 32), 8
"""Width and height."""


def _decode(deltas: Any, h: int, w: int, size: tuple[int, int], stride: int) -> list[float]:
    tx, ty, tw, th = (d * s + m for d, s, m in zip(deltas, STDS, MEANS, strict=True))
    x = max(-0.5, min(0.5, tx)) * size[0] + (w + 0.5) * stride
    y = max(-0.5, min(0.5, ty)) * size[1] + (h + 0.5) * stride
    wide = size[0] * math.exp(max(-math.log(2), min(math.log(2), tw)))
    high = size[1] * math.exp(max(-math.log(2), min(math.log(2), th)))
    return [x - wide / 2, y - high / 2, wide, high]


def _overlap(a: Any, b: Any, kind: str) -> float:
    sides = [min(a[i] + a[i + 2], b[i] + b[i + 2]) - max(a[i], b[i]) for i in (0, 1)]
    common = max(sides[0], 0) * max(sides[1], 0)
    one, two = a[2] * a[3], b[2] * b[3]
    return common / {"IOU": one + two - common, "IOMU": min(one, two), "IOFU": one}[kind]


@pytest.mark.parametrize("kind", ["IOU", "IOMU", "IOFU"])
def test_boxes_out(kind: str) -> None:
    bottoms = {"a": draw(2, 7, 4, 5), "b": draw(2, 7, 2, 3, seed=1)}
    fields = (((24, 32), 8), ((40, 30), 16))
    options = (
        f"{SCALING} box_output_param {{ fg_thr: -0.3 iou_thr: 0.4 nms_type: '{kind}' "
        "field_w: 24 field_h: 32 field_w: 40 field_h: 30 downsample_rate: 8 downsample_rate: 16 "
        "max_nms_num: 20 max_post_nms_num: 6 min_size: 12 }"
    )
    net = build(layer_text("BoxOutput", options, "a b", "boxes scores"), bottoms, force=False)
    net.forward()
    want = []
    for image in range(2):
        found = []
        for values, (size, stride) in zip(bottoms.values(), fields, strict=True):
            _, _, high, wide = values.shape
            for h in range(high):
                for w in range(wide):
                    v = values[image, :, h, w].astype(float)
                    score = max(v[1:3]) - v[0]
                    x, y, bw, bh = _decode(v[3:], h, w, size, stride)
                    x, y = max(x, 0), max(y, 0)
                    bw, bh = min(bw, wide * stride - x), min(bh, high * stride - y)
                    if score >= -0.3 and min(bw, bh) >= 12:
                        found.append((score, len(found), (x, y, bw, bh)))
        ranked = sorted(found, reverse=True)[:20]
        kept: list[Any] = []
        for one in ranked:
            if all(_overlap(other[2], one[2], kind) <= 0.4 for other in kept):
                kept.append(one)
        for score, _, (x, y, bw, bh) in kept[:6]:
            want.append([image, x, y, x + bw, y + bh, score])
    rows = np.array(want, np.float32)[:, :, None, None]
    same(net.blobs["scores"].data, rows, 1e-4, 1e-4)
    same(net.blobs["boxes"].data, rows[:, :5], 1e-4, 1e-4)


def test_no_box_out() -> None:
    options = "box_output_param { fg_thr: 99 field_w: 9 field_h: 9 downsample_rate: 8 }"
    net = build(layer_text("BoxOutput", options, "a", "y s"), {"a": draw(1, 6, 2, 2)}, force=False)
    net.forward()
    assert net.blobs["y"].data.ravel().tolist() == [0, 1, 1, 10, 10]
    assert net.blobs["s"].data.ravel().tolist() == [0] * 6
    with pytest.raises(LayerError, match="nms_type 'NEW' must be one of IOU, IOMU, IOFU"):
        build(layer_text("BoxOutput", options.replace("fg", "nms_type: 'NEW' fg"), "a"),
              {"a": draw(1, 6, 2, 2)})  # fmt: skip


def _labelled() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    labels = np.zeros((2, 6, 3, 4), np.float32)
    labels[:, 0] = rng.choice([0, 0, 1, 2], (2, 3, 4))
    y, x = np.meshgrid((np.arange(3) + 0.5) * STRIDE, (np.arange(4) + 0.5) * STRIDE, indexing="ij")
    labels[:, 1] = x + rng.normal(0, 2, (2, 3, 4))
    labels[:, 2] = y + rng.normal(0, 2, (2, 3, 4))
    labels[:, 3:5] = rng.uniform(15, 40, (2, 2, 3, 4))
    labels[:, 5] = rng.uniform(0, 1, (2, 3, 4))
    return {"x": rng.normal(0, 0.5, (2, 7, 3, 4)).astype("f4"), "l": labels}


def _loss(inputs: Any, kept: Any, weights: Any, smooth: bool = True) -> tuple[float, float]:
    """Of classes and of boxes, where `kept` background places learn."""
    x, labels = inputs["x"].astype(float), inputs["l"].astype(float)
    errors, losses = [], []
    for n, h, w in np.ndindex(2, 3, 4):
        label = int(labels[n, 0, h, w])
        if label or kept[n, h, w]:
            scores = x[n, :3, h, w]
            chance = math.exp(scores[label]) / np.exp(scores).sum()
            errors.append(-math.log(chance) * weights[n, h, w])
        if label:
            gx, gy, gw, gh = labels[n, 1:5, h, w]
            wanted = [
                (gx - (w + 0.5) * STRIDE) / FIELD[0],
                (gy - (h + 0.5) * STRIDE) / FIELD[1],
                math.log(max(gw, 2) / FIELD[0]),
                math.log(max(gh, 2) / FIELD[1]),
            ]
            away = [
                d - (t - m) / s
                for d, t, m, s in zip(x[n, 3:, h, w], wanted, MEANS, STDS, strict=True)
            ]
            losses += [a * a / 2 if not smooth or abs(a) < 1 else abs(a) - 0.5 for a in away]
    return float(np.mean(errors)), float(np.mean(losses))


def _options(more: str) -> str:
    return (
        f"{SCALING} detection_loss_param {{ cls_num: 3 field_w: {FIELD[0]} field_h: {FIELD[1]} "
        f"downsample_rate: {STRIDE} lambda: 0.7 {more} }}"
    )


@pytest.mark.parametrize("smooth", [True, False])
def test_the_loss_of_all_places(smooth: bool) -> None:
    inputs = _labelled()
    options = _options(f"sample_mode: 'none' bb_smooth: {str(smooth).lower()}")
    net = build(layer_text("DetectionLoss", options, "x l"), inputs, force=False)
    net.forward()
    kept = (inputs["l"][:, 0] == 0) & (inputs["l"][:, 5] < 0.5)
    errors, boxes = _loss(inputs, kept, np.ones((2, 3, 4)), smooth)
    same(net.blobs["y"].data.ravel(), np.float32([errors + 0.7 * boxes, 0.7 * boxes]), 1e-5)


def test_the_largest_scores_learn() -> None:
    inputs = _labelled()
    options = _options("sample_mode: 'bootstrap' bg_multiple: 1")
    net = build(layer_text("DetectionLoss", options, "x l"), inputs, force=False)
    net.forward()
    kept = np.zeros((2, 3, 4), bool)
    for n in range(2):
        free = [
            (h, w)
            for h, w in np.ndindex(3, 4)
            if inputs["l"][n, 0, h, w] == 0 and inputs["l"][n, 5, h, w] < 0.5
        ]
        for k in (1, 2):
            many = max(4, int((inputs["l"][n, 0] == k).sum()))
            for place in sorted(free, key=lambda at, n=n, k=k: -inputs["x"][n, k, at[0], at[1]])[
                :many
            ]:  # type: ignore[misc]
                kept[(n, *place)] = True
    errors, boxes = _loss(inputs, kept, np.ones((2, 3, 4)))
    same(net.blobs["y"].data.ravel()[0], np.float32(errors + 0.7 * boxes), 1e-5)


def test_weights_of_objects() -> None:
    inputs = _labelled()
    options = _options("sample_mode: 'all' iou_weighted: true pos_neg_weighted: true")
    net = build(layer_text("DetectionLoss", options, "x l"), inputs, force=False)
    net.forward()
    objects = inputs["l"][:, 0] != 0
    kept = ~objects & (inputs["l"][:, 5] < 0.5)
    weights = np.where(objects, inputs["l"][:, 5], 1).astype(float)
    many = objects.sum() + kept.sum()
    weights[objects] *= 0.2 * many / weights[objects].sum()
    weights[~objects] *= 0.8 * many / kept.sum()
    errors, boxes = _loss(inputs, kept, weights)
    same(net.blobs["y"].data.ravel()[0], np.float32(errors + 0.7 * boxes), 1e-5)


@pytest.mark.parametrize("mode", ["random", "mixture"])
def test_background_by_chance(mode: str) -> None:
    inputs = _labelled()
    text = layer_text("DetectionLoss", _options(f"sample_mode: '{mode}'"), "xb l")
    net = build(biased("x") + text, inputs, force=False)
    net.forward()
    net.backward()
    slope = net.blobs["xb"].diff
    free = (inputs["l"][:, 0] == 0) & (inputs["l"][:, 5] < 0.5)
    learned = abs(slope[:, :3]).max(1) > 0
    assert not (learned & ~free & (inputs["l"][:, 0] == 0)).any()
    assert learned[inputs["l"][:, 0] != 0].all()
    assert (learned & free).any()


def test_gradients_of_the_loss() -> None:
    inputs = _labelled()
    inputs["x"] *= 0.3
    options = _options("sample_mode: 'all' bb_smooth: false iou_weighted: true")
    net = build(layer_text("DetectionLoss", options, "x l", "y"), inputs, force=False)
    net.forward()
    weighted = options + " loss_weight: 1"
    text = biased("x") + layer_text("DetectionLoss", weighted, "xb l")
    net = build(text, inputs, force=False)
    net.forward()
    net.blobs["y"].diff[...] = [[[[1, 0]]]]
    net.backward()
    slope = np.array(net.blobs["xb"].diff)
    rng, step = np.random.default_rng(0), 1e-2
    for place in zip(*(rng.integers(0, side, 12) for side in inputs["x"].shape), strict=True):
        around = []
        for sign in (1, -1):
            net.blobs["x"].data[...] = inputs["x"]
            net.blobs["x"].data[place] += sign * step
            net.forward()
            around.append(float(net.blobs["y"].data.ravel()[0]))
        want = (around[0] - around[1]) / (2 * step)
        assert slope[place] == pytest.approx(want, rel=2e-2, abs=1e-4)


def test_the_detection_loss_of_yolo_is_another() -> None:
    text = layer_text("DetectionLoss", "detection_loss_param { side: 7 num_object: 2 }", "x l")
    with pytest.raises(LayerError, match="DetectionLoss of gklz1982/caffe-yolov2"):
        build(text, _labelled())


def test_accuracy() -> None:
    inputs = _labelled()
    options = (
        f"{SCALING} detection_accuracy_param {{ cls_num: 3 field_w: {FIELD[0]} field_h: {FIELD[1]} "
        f"downsample_rate: {STRIDE} top_k: 2 field_xyr: 2 }}"
    )
    net = build(layer_text("DetectionAccuracy", options, "x l", "a o"), inputs, force=False)
    net.forward()
    right, objects, shared = [], [], []
    for n, h, w in np.ndindex(2, 3, 4):
        label = int(inputs["l"][n, 0, h, w])
        if not label and inputs["l"][n, 5, h, w] >= 0.5:
            continue
        hit = label in np.argsort(-inputs["x"][n, :3, h, w])[:2]
        right.append(hit)
        if label:
            objects.append(hit)
            x, y, wide, high = _decode(inputs["x"][n, 3:, h, w].astype(float), h, w, FIELD, STRIDE)
            gx, gy, gw, gh = inputs["l"][n, 1:5, h, w].astype(float)
            real = [gx - gw / 2, gy - gh / 2, gw, gh]
            shared.append(_overlap([x, y, wide, high], real, "IOU"))
    same(net.blobs["a"].data.ravel(), np.float32([np.mean(right), np.mean(objects)]))
    same(net.blobs["o"].data.ravel(), np.float32([np.mean(shared)]), 1e-4)


# -- MMDLoss ---------------------------------------------------------------------------------


def _discrepancy(a: Any, b: Any, pairs: Any, gamma: float) -> float:
    def kernels(x: Any, y: Any) -> float:
        distance = ((x - y) ** 2).sum()
        return float(sum(math.exp(-gamma * 2.0**power * distance) for power in (-2, -1, 0, 1, 2)))

    return sum(
        kernels(a[s1], a[s2])
        + kernels(b[t1], b[t2])
        - kernels(a[s1], b[t2])
        - kernels(a[s2], b[t1])
        for (s1, s2), (t1, t2) in pairs
    )


def test_discrepancy() -> None:
    """Two records of each domain leave four ways to draw each of two pairs."""
    a, b = draw(2, 3), draw(2, 3, seed=1) + 0.5
    net = build(layer_text("MMDLoss", "", "a b"), {"a": a, "b": b})
    net.forward()
    net.backward()
    both = np.concatenate([a, b]).astype(float)
    spread = ((both[:, None] - both[None]) ** 2).sum()
    ways = [(s, t) for s in ((0, 1), (1, 0)) for t in ((0, 1), (1, 0))]
    gamma = 4 * 3 / spread
    found = float(net.blobs["y"].data)
    matching = [
        (one, two)
        for one in ways
        for two in ways
        if abs(_discrepancy(a, b, (one, two), gamma) - found) < 1e-4
    ]
    assert matching
    step = 1e-4
    for name, values in (("a", a.astype(float)), ("b", b.astype(float))):
        want = np.zeros(values.shape)
        for place in np.ndindex(*values.shape):
            around = []
            for sign in (1, -1):
                moved = values.copy()
                moved[place] += sign * step
                one, two = (moved, b) if name == "a" else (a, moved)
                around.append(_discrepancy(one, two, matching[0], gamma))
            want[place] = (around[0] - around[1]) / (2 * step) / 2
        same(net.blobs[name].diff, want.astype(np.float32), 1e-3, 1e-5)


def test_widths_that_stay() -> None:
    net = build(layer_text("MMDLoss", "mmd_param { fix_gamma: true kernel_num: 1 }", "a b"),
                {"a": draw(2, 3), "b": draw(2, 3, seed=1)})  # fmt: skip
    net.forward()
    net.blobs["a"].data[...] *= 1e3
    net.blobs["b"].data[...] *= -1e3
    net.forward()
    assert abs(float(net.blobs["y"].data)) < 1e-6


def test_one_record_has_no_discrepancy() -> None:
    net = build(layer_text("MMDLoss", "", "a b"), {"a": draw(1, 3), "b": draw(4, 3)})
    net.forward()
    net.backward()
    assert float(net.blobs["y"].data) == 0
    assert not net.blobs["b"].diff.any()
    with pytest.raises(LayerError, match="records of one size; they are 1 x 3 and 4 x 2"):
        build(layer_text("MMDLoss", "", "a b"), {"a": draw(1, 3), "b": draw(4, 2)})


# -- CTPN ------------------------------------------------------------------------------------


def test_axes_in_another_order() -> None:
    x = draw(2, 3, 4, 5)
    text = layer_text("Transpose", "transpose_param { dim: 3 dim: 0 dim: 2 dim: 1 }")
    net = build(text, {"x": x})
    net.forward()
    same(net.blobs["y"].data, x.transpose(3, 0, 2, 1))
    check_gradients(text, {"x": x})
    with pytest.raises(LayerError, match="each of the 4 axes of the bottom once"):
        build(text.replace("dim: 3", "dim: 2"), {"x": x})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_axis_backwards(axis: int) -> None:
    x = draw(2, 3, 4)
    text = layer_text("Reverse", f"reverse_param {{ axis: {axis} }}")
    net = build(text, {"x": x})
    net.forward()
    same(net.blobs["y"].data, np.flip(x, axis))
    check_gradients(text, {"x": x})


def test_a_picture_without_objects_still_shows_background() -> None:
    """Four places are drawn for each of the three classes."""
    asked: list[int] = []

    def integers(low: int, high: int, count: int) -> Any:
        asked.append(count)
        return np.arange(count) % high

    values = {"bg_threshold": 0.5, "sample": "random", "bg_multiple": 3.0, "classes": 4}
    shape, rng = (1, 4, 5), SimpleNamespace(integers=integers)
    found = chosen(np.zeros(shape), np.zeros(shape), np.zeros((1, 4, 4, 5)), values, rng)
    assert asked == [12]
    assert np.flatnonzero(found).tolist() == list(range(12))
