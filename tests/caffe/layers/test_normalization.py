"""BatchNorm, LRN, MVN and Normalize against numpy and finite differences."""

import itertools
from typing import Any

import numpy as np
import pytest

import sparknet.caffe as caffe
from tests.caffe.gradient import build, check_gradients
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    values,
)

SHAPES = [
    (5, 3),
    (700, 24),
    (4, 3, 4),
    (3, 2, 3, 2),
    (2, 3, 2, 2, 2),
    (2, 3, 2, 1, 2, 2),
    (3, 16, 2, 2),
]


def batch_norm(x: Any, dy: Any, eps: float = 1e-5) -> tuple[Any, Any]:
    axes = (0, *range(2, x.ndim))
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    deviation = np.sqrt(x.var(axes, keepdims=True) + eps)
    y = (x - x.mean(axes, keepdims=True)) / deviation
    tilt = (dy * y).mean(axes, keepdims=True)
    return y, (dy - dy.mean(axes, keepdims=True) - tilt * y) / deviation


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_batch_statistics(shape, in_place, phase):
    """In place behind a Power and before a Scale, as residual nets have it."""
    x, dy = values(*shape), values(*shape, seed=3)
    top = "p" if in_place else "y"
    text = layer_text("Power", top="p").replace('"l"', '"front_p"')
    text += layer_text("BatchNorm", "batch_norm_param { use_global_stats: false }", "p", top)
    text += layer_text("Scale", "scale_param { filler { value: 3 } }", top, top).replace(
        '"l"', '"after"'
    )
    net = build(text, {"x": x}, phase)
    net.forward()
    y, dx = batch_norm(x, 3 * dy)
    np.testing.assert_allclose(net.blobs[top].data, 3 * y, rtol=1e-4, atol=1e-4)
    net.blobs[top].diff[...] = dy
    net.backward()
    np.testing.assert_allclose(net.blobs["x"].diff, dx, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        net.params["after"][0].diff, (dy * y).sum((0, *range(2, x.ndim))), rtol=1e-3, atol=1e-3
    )
    count = x.size // shape[1]
    axes = (0, *range(2, x.ndim))
    mean, variance, factor = (blob.data for blob in net.params["l"])
    np.testing.assert_allclose(mean, x.mean(axes), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(variance, x.var(axes) * count / (count - 1), rtol=1e-4)
    assert factor[0] == 1
    net.forward()
    assert factor[0] == np.float32(0.999) + np.float32(1)


@pytest.mark.parametrize("channels", [16, 24, 72])
def test_behind_a_convolution(channels):
    """Which may leave its channels last: whole rows of them are walked, in several pieces."""
    fill = 'weight_filler { type: "gaussian" std: 0.5 } bias_filler { type: "uniform" }'
    text = layer_text(
        "Convolution",
        f"convolution_param {{ num_output: {channels} kernel_size: 1 {fill} }}",
        top="c",
    ).replace('"l"', '"conv"') + layer_text(
        "BatchNorm", "batch_norm_param { use_global_stats: false }", "c", "y"
    )
    net = build(text, {"x": values(2, 24, 21, 20)}, caffe.TRAIN)
    dy = values(2, channels, 21, 20, seed=3)
    net.forward()
    net.blobs["y"].diff[...] = dy
    net.backward()
    y, dx = batch_norm(net.blobs["c"].data, dy)
    np.testing.assert_allclose(net.blobs["y"].data, y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(net.blobs["c"].diff, dx, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("in_place", [False, True])
def test_running_statistics(shape, in_place):
    x, dy = values(*shape), values(*shape, seed=3)
    top = "x" if in_place else "y"
    net = build(layer_text("BatchNorm", "", top=top), {"x": x}, caffe.TEST)
    own = net.params["l"]
    own[0].data[...], own[1].data[...], own[2].data[...] = 3, 8, 2
    net.forward()
    np.testing.assert_allclose(net.blobs[top].data, (x - 1.5) / np.sqrt(4 + 1e-5), rtol=1e-5)
    net.blobs[top].diff[...] = dy
    net.backward()
    np.testing.assert_allclose(net.blobs["x"].diff, dy / np.sqrt(4 + 1e-5), rtol=1e-5)
    assert [blob.data.flat[0] for blob in own] == [3, 8, 2]


@pytest.mark.parametrize("options", ["eps: 0.01", "moving_average_fraction: 0.5"])
def test_gradients(options):
    """Of the input alone: the statistics take no gradient, and every pass moves them."""
    text = layer_text("BatchNorm", f"batch_norm_param {{ {options} }}")
    _check_input(text, {"x": np.sin(values(3, 2, 2, 3))})


def _check_input(text: str, inputs: dict[str, Any]) -> None:
    net = build(text, inputs)
    x = net.blobs["x"].data
    net.forward()
    dy = values(*x.shape, seed=2)
    net.blobs["y"].diff[...] = dy
    net.backward()
    got = np.array(net.blobs["x"].diff)
    for place in np.ndindex(x.shape):
        kept, sums = float(x[place]), []
        for value in (kept + 1e-2, kept - 1e-2):
            x[place] = value
            net.forward()
            sums.append(float((net.blobs["y"].data.astype(np.float64) * dy).sum()))
        x[place] = kept
        assert got[place] == pytest.approx((sums[0] - sums[1]) / 2e-2, rel=2e-2, abs=2e-2)


OPTIONS = [
    "local_size: 5 alpha: 0.5 beta: 0.75",
    "local_size: 3 alpha: 0.5 beta: 0.75 k: 2",
    "local_size: 5 alpha: 0.7 beta: 0.5",
    "local_size: 1 alpha: 0.2 beta: 0.75",
    "local_size: 99 alpha: 5 beta: 0.75",
    "local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL",
    "local_size: 5 alpha: 0.5 beta: 0.4 k: 9 norm_region: WITHIN_CHANNEL",
]


def text(options: str) -> str:
    return layer_text("LRN", f"lrn_param {{ {options} }}")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("channels", [3, 16])
def test_lrn_gradients(options, channels):
    check_gradients(text(options), {"x": np.sin(values(1, channels, 3, 4))})


def reference(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    half, wide = size // 2, x.astype(np.float64) ** 2
    sums = [wide[:, max(0, c - half) : c + half + 1].sum(1) for c in range(x.shape[1])]
    return x * (k + alpha / size * np.stack(sums, 1)) ** -beta


@pytest.mark.parametrize("size", [1, 3, 5, 7])
@pytest.mark.parametrize("beta", [0.75, 0.5])
@pytest.mark.parametrize("channels", [1, 4, 16, 20, 48])
def test_across_channels(size, beta, channels):
    x = values(2, channels, 3, 5)
    y, *_ = passes(text(f"local_size: {size} alpha: 0.3 beta: {beta} k: 1.5"), {"x": x})
    np.testing.assert_allclose(y, reference(x, size, 0.3, beta, 1.5), rtol=2e-5, atol=1e-6)


MVN_OPTIONS = [
    "",
    "normalize_variance: false",
    "across_channels: true",
    "across_channels: true normalize_variance: false",
]


@pytest.mark.parametrize("options", MVN_OPTIONS)
@pytest.mark.parametrize("shape", [(2, 3, 3, 4), (2, 3, 5)])
def test_mvn_gradients(options, shape):
    if len(shape) == 3:
        shape = (2, 3, 12)
    check_gradients(layer_text("MVN", f"mvn_param {{ {options} }}"), {"x": np.sin(values(*shape))})


NORMALIZE_OPTIONS = list(itertools.product(("false", "true"), repeat=2))


def normalize_text(whole: str, shared: str) -> str:
    rest = "scale_filler { type: 'uniform' min: 1 max: 3 }"
    options = f"across_spatial: {whole} channel_shared: {shared} {rest}"
    return layer_text("Normalize", f"norm_param {{ {options} }}")


@pytest.mark.parametrize(("whole", "shared"), NORMALIZE_OPTIONS)
@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (2, 4), (2, 3, 4)])
def test_normalize_gradients(whole, shared, shape):
    check_gradients(normalize_text(whole, shared), {"x": np.sin(values(*shape)) + 0.2})


@pytest.mark.parametrize(("whole", "shared"), NORMALIZE_OPTIONS)
def test_values(whole, shared):
    x = values(2, 3, 4, 5)
    y, _, net = passes(normalize_text(whole, shared), {"x": x})
    norm = np.sqrt((x**2).sum((1, 2, 3) if whole == "true" else 1, keepdims=True) + 1e-10)
    factor = net.params["l"][0].data.reshape(-1, 1, 1)
    np.testing.assert_allclose(y, x / norm * factor, rtol=1e-5)
