"""MS-CNN's layers against loops as slow as the paper is long, and differences."""

import math

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw, same

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


def _decode(deltas, h, w, size, stride):
    tx, ty, tw, th = (d * s + m for d, s, m in zip(deltas, STDS, MEANS, strict=True))
    x = max(-0.5, min(0.5, tx)) * size[0] + (w + 0.5) * stride
    y = max(-0.5, min(0.5, ty)) * size[1] + (h + 0.5) * stride
    wide = size[0] * math.exp(max(-math.log(2), min(math.log(2), tw)))
    high = size[1] * math.exp(max(-math.log(2), min(math.log(2), th)))
    return [x - wide / 2, y - high / 2, wide, high]


def _overlap(a, b, kind):
    sides = [min(a[i] + a[i + 2], b[i] + b[i + 2]) - max(a[i], b[i]) for i in (0, 1)]
    common = max(sides[0], 0) * max(sides[1], 0)
    one, two = a[2] * a[3], b[2] * b[3]
    return common / {"IOU": one + two - common, "IOMU": min(one, two), "IOFU": one}[kind]


@pytest.mark.parametrize("kind", ["IOU", "IOMU", "IOFU"])
def test_boxes_out(kind):
    bottoms = {"a": draw(2, 7, 4, 5), "b": draw(2, 7, 2, 3, seed=1)}
    fields = (((24, 32), 8), ((40, 30), 16))
    options = (
        f"{SCALING} box_output_param {{ fg_thr: -0.3 iou_thr: 0.4 nms_type: '{kind}' "
        "field_w: 24 field_h: 32 field_w: 40 field_h: 30 downsample_rate: 8 downsample_rate: 16 "
        "max_nms_num: 20 max_post_nms_num: 6 min_size: 12 }"
    )
    net = run(layer_text("BoxOutput", options, "a b", "boxes scores"), bottoms, force=False)
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
        kept = []
        for one in ranked:
            if all(_overlap(other[2], one[2], kind) <= 0.4 for other in kept):
                kept.append(one)
        for score, _, (x, y, bw, bh) in kept[:6]:
            want.append([image, x, y, x + bw, y + bh, score])
    rows = np.array(want, np.float32)[:, :, None, None]
    same(net.blobs["scores"].data, rows, 1e-4, 1e-4)
    same(net.blobs["boxes"].data, rows[:, :5], 1e-4, 1e-4)


def test_no_box_out():
    options = "box_output_param { fg_thr: 99 field_w: 9 field_h: 9 downsample_rate: 8 }"
    net = run(layer_text("BoxOutput", options, "a", "y s"), {"a": draw(1, 6, 2, 2)}, force=False)
    assert net.blobs["y"].data.ravel().tolist() == [0, 1, 1, 10, 10]
    assert net.blobs["s"].data.ravel().tolist() == [0] * 6
    with pytest.raises(LayerError, match="nms_type 'NEW' must be one of IOU, IOMU, IOFU"):
        build(layer_text("BoxOutput", options.replace("fg", "nms_type: 'NEW' fg"), "a"),
              {"a": draw(1, 6, 2, 2)})  # fmt: skip


# -- MMDLoss ---------------------------------------------------------------------------------


def _discrepancy(a, b, pairs, gamma):
    def kernels(x, y):
        distance = ((x - y) ** 2).sum()
        return float(sum(math.exp(-gamma * 2.0**power * distance) for power in (-2, -1, 0, 1, 2)))

    return sum(
        kernels(a[s1], a[s2])
        + kernels(b[t1], b[t2])
        - kernels(a[s1], b[t2])
        - kernels(a[s2], b[t1])
        for (s1, s2), (t1, t2) in pairs
    )


def test_discrepancy():
    """Two records of each domain leave four ways to draw each of two pairs."""
    a, b = draw(2, 3), draw(2, 3, seed=1) + 0.5
    net = run(layer_text("MMDLoss", "", "a b"), {"a": a, "b": b})
    net.backward()
    both = np.concatenate([a, b]).astype(float)
    spread = ((both[:, None] - both[None]) ** 2).sum()
    ways = [(s, t) for s in ((0, 1), (1, 0)) for t in ((0, 1), (1, 0))]
    gamma = 4 * 3 / spread
    actual = float(net.blobs["y"].data)
    matching = [
        (one, two)
        for one in ways
        for two in ways
        if abs(_discrepancy(a, b, (one, two), gamma) - actual) < 1e-4
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


def test_widths_that_stay():
    net = build(layer_text("MMDLoss", "mmd_param { fix_gamma: true kernel_num: 1 }", "a b"),
                {"a": draw(2, 3), "b": draw(2, 3, seed=1)})  # fmt: skip
    net.forward()
    net.blobs["a"].data[...] *= 1e3
    net.blobs["b"].data[...] *= -1e3
    net.forward()
    assert abs(float(net.blobs["y"].data)) < 1e-6


def test_one_record_has_no_discrepancy():
    net = run(layer_text("MMDLoss", "", "a b"), {"a": draw(1, 3), "b": draw(4, 3)})
    net.backward()
    assert float(net.blobs["y"].data) == 0
    assert not net.blobs["b"].diff.any()
    with pytest.raises(LayerError, match="records of one size; they are 1 x 3 and 4 x 2"):
        build(layer_text("MMDLoss", "", "a b"), {"a": draw(1, 3), "b": draw(4, 2)})


# -- CTPN ------------------------------------------------------------------------------------


def test_axes_in_another_order():
    x = draw(2, 3, 4, 5)
    text = layer_text("Transpose", "transpose_param { dim: 3 dim: 0 dim: 2 dim: 1 }")
    net = run(text, {"x": x})
    same(net.blobs["y"].data, x.transpose(3, 0, 2, 1))
    check_gradients(text, {"x": x})
    with pytest.raises(LayerError, match="each of the 4 axes of the bottom once"):
        build(text.replace("dim: 3", "dim: 2"), {"x": x})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_axis_backwards(axis):
    x = draw(2, 3, 4)
    text = layer_text("Reverse", f"reverse_param {{ axis: {axis} }}")
    net = run(text, {"x": x})
    same(net.blobs["y"].data, np.flip(x, axis))
    check_gradients(text, {"x": x})
