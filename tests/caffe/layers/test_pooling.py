"""Pooling, SPP and ROIPooling against loops and finite differences."""

import math

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    values,
)
from tests.caffe.layers.passing import backward, draw, same


def text(method: str, rest: str, **names: str) -> str:
    return layer_text("Pooling", f"pooling_param {{ pool: {method} {rest} }}", **names)


CONVOLVED = """layer { name: "conv" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 16 kernel_size: 1 } }"""


def test_mask_holds_the_positions_and_does_not_steer_the_gradient():
    x = np.array([[[[1, 5, 2], [5, 0, 3], [4, 4, 9]]]], np.float32)
    net = run(text("MAX", "kernel_size: 2", top="y mask"), {"x": x})
    np.testing.assert_array_equal(net.blobs["mask"].data, [[[[1, 1], [3, 8]]]])
    net.blobs["mask"].data[...] = 1e9
    net.blobs["y"].diff[...] = 1
    net.backward()
    np.testing.assert_array_equal(net.blobs["x"].diff[0, 0], [[0, 2, 0], [1, 0, 0], [0, 0, 1]])


def test_stochastic_picks_in_proportion():
    x = np.tile(np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 2, 2), (1, 4000, 1, 1))
    y, dy, net = passes(text("STOCHASTIC", "kernel_size: 2"), {"x": x})
    for value in (1, 2, 3, 4):
        p = value / 10
        assert abs((y == value).mean() - p) < 6 * np.sqrt(p * (1 - p) / 4000)
    np.testing.assert_array_equal(net.blobs["x"].diff, np.where(x == y, dy, 0))
    net.forward()
    assert (net.blobs["y"].data != y).any()


def test_stochastic_without_weight_picks_the_first():
    y, dy, net = passes(text("STOCHASTIC", "kernel_size: 2"), {"x": np.zeros((1, 1, 2, 2))})
    np.testing.assert_array_equal(net.blobs["x"].diff, [[[[dy.item(), 0], [0, 0]]]])
    assert y.item() == 0


def test_stochastic_expects_in_the_test_phase():
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    y, *_ = passes(text("STOCHASTIC", "kernel_size: 2"), {"x": x}, phase=caffe.TEST)
    assert y.item() == pytest.approx(3)
    positive = np.abs(values(2, 2, 4, 4)) + 0.5
    check_gradients(text("STOCHASTIC", "kernel_size: 2"), {"x": positive}, phase=caffe.TEST)


def test_odd_sizes_do_not_break():
    for shape in ((0, 2, 4, 4), (2, 0, 4, 4)):
        y, *_ = passes(text("MAX", "kernel_size: 2"), {"x": np.zeros(shape)})
        assert y.size == 0
    wide = values(1, 1, 3, 700)
    y, *_ = passes(text("MAX", "global_pooling: true"), {"x": wide})
    assert y.item() == wide.max()
    line = np.concatenate([values(1, 3, 508, 1), -np.abs(values(1, 3, 508, 1))])
    line[1, 2, 100] = np.nan
    net = build(
        text("MAX", "global_pooling: true"), {"x": line}, caffe.TEST, force=False, keep_blobs=False
    )
    np.testing.assert_array_equal(net.forward()["y"][1:, :2], line.max(2, keepdims=True)[1:, :2])
    np.testing.assert_array_equal(net.blobs["y"].data[0], line.max(2, keepdims=True)[0])
    net.blobs["x"].data[...] = np.nan_to_num(line, nan=-1)
    same(net.forward()["y"], np.nan_to_num(line, nan=-1).max(2, keepdims=True))
    huge = "kernel_size: 2000000000 pad: 1999999999 stride: 2000000000"
    y, *_ = passes(text("MAX", huge), {"x": wide})
    assert y.max() == wide.max()


@pytest.mark.parametrize("method", ["MAX", "AVE", "STOCHASTIC"])
@pytest.mark.parametrize("front", ["", CONVOLVED])
def test_a_window_with_nan_is_nan(front, method):
    x = np.abs(np.sin(values(2, 16, 6, 6))) + 0.1
    x[1, 3, 3, 2] = np.nan
    lines = front + text(method, "kernel_size: 2 stride: 2", bottom="c" if front else "x")
    for phase in (caffe.TRAIN, caffe.TEST):
        net = build(lines, {"x": x}, phase)
        if front:
            net.params["conv"][0].data[...] = np.eye(16)[:, :, None, None]
        net.forward()
        spoilt = np.isnan(net.blobs["y"].data)
        assert spoilt[1, :, 1, 1].all() if front else spoilt[1, 3, 1, 1]
        assert spoilt.sum() == (16 if front else 1)


@pytest.mark.parametrize("method", ["MAX", "AVE", "STOCHASTIC"])
def test_levels_are_poolings_in_a_row(method):
    x = np.abs(values(2, 3, 8, 4)) + 1
    text = layer_text("SPP", f"spp_param {{ pyramid_height: 2 pool: {method} }}")
    y, *_ = passes(text, {"x": x})
    parts = x.reshape(2, 3, 2, 4, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 4, 8)
    if method == "STOCHASTIC":
        assert y.shape == (2, 15)
        assert np.isin(y, x).all()
        return
    fold = np.max if method == "MAX" else np.mean
    want = [fold(x, (2, 3)), fold(parts, 3).reshape(2, -1)]
    np.testing.assert_allclose(y, np.concatenate(want, 1), rtol=1e-5)


LAYER = (
    'layer {{ name: "roi" type: "ROIPooling" bottom: "x" bottom: "r" top: "y" '
    "roi_pooling_param {{ pooled_h: {} pooled_w: {} spatial_scale: {} }} }}"
)
REGIONS = [
    [0, 0, 0, 5, 5],
    [1, 1, 2, 3, 4],
    [1, 4, 4, 2, 1],
    [0, -3, -2, 1, 9],
    [0, 5, 5, 5, 5],
    [1, 20, 20, 30, 30],
    [0, -1e30, -math.inf, 1e30, math.inf],
]


def half_up(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def span(first, number, length):
    """The pixels of a bin, in single precision as Caffe has it."""
    begin = math.floor(np.float32(number) * length)
    end = math.ceil(np.float32(number + 1) * length)
    return range(max(first + begin, 0), min(first + end, 6))


def pooled(x, regions, size, scale):
    y = np.zeros((len(regions), x.shape[1], *size), np.float32)
    where = np.full(y.shape, -1)
    for n, (image, *corners) in enumerate(regions):
        x1, y1, x2, y2 = (half_up(float(np.clip(c * scale, -1e9, 1e9))) for c in corners)
        high = np.float32(max(y2 - y1 + 1, 1)) / np.float32(size[0])
        wide = np.float32(max(x2 - x1 + 1, 1)) / np.float32(size[1])
        for c, i, j in np.ndindex(*y.shape[1:]):
            rows, columns = span(y1, i, high), span(x1, j, wide)
            places = [(x[int(image), c, h, w], -(h * 6 + w)) for h in rows for w in columns]
            if places:
                y[n, c, i, j], place = max(places)
                where[n, c, i, j] = -place
    return y, where


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 7)])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_values_and_gradients(size, scale):
    x, regions = draw(2, 3, 6, 6), np.array(REGIONS, np.float32)
    x[0, 0, 1, 1] = x[0, 0, 3, 3] = 9
    net = run(LAYER.format(*size, scale), {"x": x, "r": regions})
    want, where = pooled(x, REGIONS, size, scale)
    same(net.blobs["y"].data, want, 0, 0)
    gradients, diff = backward(net)["y"], np.zeros((2, 3, 36), np.float32)
    for at in np.argwhere(where >= 0):
        n, c, _, _ = at
        diff[int(REGIONS[n][0]), c, where[tuple(at)]] += gradients[tuple(at)]
    same(net.blobs["x"].diff, diff.reshape(x.shape))
    assert not net.blobs["r"].diff.any()


def test_gradient_by_differences():
    x = np.random.default_rng(0).permutation(72).reshape(1, 2, 6, 6) / 5
    regions = np.array([[0, 0, 0, 4, 5], [0, 2, 1, 4, 4]])
    check_gradients(LAYER.format(2, 2, 1.0), {"x": x, "r": regions}, of=["x"])


@pytest.mark.parametrize("image", [2, -1, float("nan")])
def test_image_out_of_range(image):
    net = build(LAYER.format(2, 2, 1.0), {"x": draw(2, 1, 6, 6), "r": [[image, 0, 0, 2, 2]]})
    with pytest.raises(LayerError, match=r"'roi'.*region 0 is of image"):
        net.forward()
    net.backward()


def test_corner_is_no_number():
    net = build(LAYER.format(2, 2, 1.0), {"x": draw(2, 1, 6, 6), "r": [[0, 0, math.nan, 2, 2]]})
    with pytest.raises(LayerError, match="corner 1 of region 0 is nan"):
        net.forward()
