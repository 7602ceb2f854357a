"""Convolutions of 3 x 3 and 5 x 5 windows with fewer products, against sums in double precision.

In bfloat16 they multiply in float32, so that only values that are stored are rounded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet import native
from sparknet.layers import Plan, Shape
from sparknet.layers.convolution import Convolution, plan_convolution
from tests.caffe.gradient import build, check_gradients
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import backward, draw
from tests.caffe.layers.test_narrow import rounded

Pair = tuple[int, int]

PRECISIONS = ["float32", "bf16"] if native.has_bf16() else ["float32"]
each_precision = pytest.mark.parametrize("precision", PRECISIONS)


@pytest.fixture
def few_products(monkeypatch):
    """The engine takes few products wherever it can, not only where that is faster."""

    def infer(layer: Convolution, bottoms: Sequence[Shape]) -> Plan:
        plan = plan_convolution(layer, bottoms)
        return replace(plan, values={**plan.values, "few_products": True})

    monkeypatch.setattr(Convolution, "infer", infer)


def conv(
    outputs: int,
    pad: Pair = (1, 1),
    group: int = 1,
    rest: str = "",
    bottom: str = "x",
    window: int = 3,
) -> str:
    options = f"num_output: {outputs} pad_h: {pad[0]} pad_w: {pad[1]} group: {group}"
    options += f" kernel_size: {window}"
    filler = "weight_filler { type: 'xavier' } bias_filler { type: 'gaussian' }"
    tops = bottom.replace("x", "y")
    return layer_text(
        "Convolution", f"convolution_param {{ {options} {filler} {rest} }}", bottom, tops
    )


class Direct:
    """The three passes, tap by tap in double precision."""

    def __init__(self, x: Any, weights: Any, bias: Any, slopes: Any, pad: Pair, group: int) -> None:
        height, width = slopes.shape[2:]
        wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
        self.y = np.zeros(slopes.shape) + bias[:, None, None]
        self.weights = np.zeros(weights.shape)
        to_wide = np.zeros(wide.shape)
        for g, i, j in np.ndindex(group, *weights.shape[2:]):
            read, made = (
                slice(g * n // group, (g + 1) * n // group) for n in (x.shape[1], weights.shape[0])
            )
            taps = weights[made, :, i, j].astype(np.float64)
            seen = wide[:, read, i : i + height, j : j + width]
            given = slopes[:, made].astype(np.float64)
            self.y[:, made] += np.einsum("oc,nchw->nohw", taps, seen, optimize=True)
            to_wide[:, read, i : i + height, j : j + width] += np.einsum(
                "oc,nohw->nchw", taps, given, optimize=True
            )
            self.weights[made, :, i, j] = np.einsum("nohw,nchw->oc", given, seen, optimize=True)
        rows, columns = (slice(p, p + n) for p, n in zip(pad, x.shape[2:], strict=True))
        self.x = to_wide[:, :, rows, columns]
        self.bias = slopes.sum((0, 2, 3), dtype=np.float64)


def near(got: Any, want: Any, narrow: bool = False) -> None:
    """To a hundred thousandth of the largest value: what the transforms may lose.  In bfloat16
    half a step of the value more."""
    half = 2.0**-8 if narrow else 0
    np.testing.assert_allclose(got, want, rtol=half, atol=1e-5 * np.abs(want).max())


def check(net: Any, x: Any, pad: Pair, group: int) -> None:
    x = rounded(x)
    net.blobs["x"].data[...] = x
    net.forward()
    y = net.blobs["y"].data.copy()
    slopes = rounded(draw(*y.shape, seed=1))
    net.clear_param_diffs()
    net.blobs["y"].diff[...] = slopes
    net.backward()
    weights, bias = net.params["l"]
    narrow = net.precision == "bf16"
    want = Direct(x, weights.data, bias.data, slopes, pad, group)
    near(y, want.y, narrow)
    near(net.blobs["x"].diff, want.x, narrow)
    near(weights.diff, want.weights)
    near(bias.diff, want.bias)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize(
    ("shape", "outputs", "pad", "group"),
    [
        ((1, 16, 4, 4), 16, (1, 1), 1),  # one tile
        ((1, 16, 1, 1), 16, (1, 1), 1),
        ((1, 16, 3, 3), 32, (0, 0), 1),
        ((2, 32, 7, 9), 48, (0, 2), 1),
        ((3, 32, 13, 13), 64, (1, 1), 2),
        ((2, 64, 14, 11), 32, (2, 0), 1),
        ((4, 48, 30, 17), 112, (1, 1), 1),
        ((5, 96, 6, 5), 64, (2, 2), 2),
        ((2, 16, 11, 11), 16, (5, 3), 1),
        ((1, 512, 8, 8), 64, (1, 1), 1),
        ((40, 64, 8, 9), 64, (1, 1), 4),  # several chunks of tiles
        ((2, 20, 12, 12), 50, (0, 0), 1),  # channels that fill no whole vectors
        ((1, 17, 9, 8), 31, (2, 3), 1),
        ((2, 66, 6, 7), 99, (1, 1), 3),
        ((3, 40, 5, 5), 24, (1, 0), 1),
    ],
)
@pytest.mark.parametrize("window", [3, 5])
@each_precision
def test_all_passes(shape, outputs, pad, group, window, precision):
    pad = (pad[0] + (window - 3) // 2, pad[1] + (window - 3) // 2)
    x = draw(*shape)
    text = conv(outputs, pad, group, window=window)
    check(build(text, {"x": x}, precision=precision), x, pad, group)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize(
    ("shape", "outputs", "group", "window"),
    [
        ((8, 20, 12, 12), 50, 1, 5),
        ((9, 40, 7, 10), 34, 2, 5),
        ((11, 16, 5, 5), 16, 1, 5),
        ((9, 24, 13, 9), 50, 1, 3),
        ((8, 64, 5, 6), 32, 2, 3),
    ],
)
@each_precision
def test_all_passes_without_padding(shape, outputs, group, window, precision):
    x = draw(*shape)
    text = conv(outputs, (0, 0), group, window=window)
    check(build(text, {"x": x}, precision=precision), x, (0, 0), group)


@pytest.mark.usefixtures("few_products")
@settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_all_passes_of_any_shape(data):
    def number(least: int, most: int) -> int:
        return data.draw(st.integers(least, most))

    window, group = data.draw(st.sampled_from([3, 5])), number(1, 3)
    pad = (number(0, window), number(0, window))
    plane = [number(max(1, window - 2 * p), 9) for p in pad]
    shape = (number(1, 9), group * number(16, 70), *plane)
    x = draw(*shape)
    text = conv(group * number(16, 70), pad, group, window=window)
    precision = data.draw(st.sampled_from(PRECISIONS))
    check(build(text, {"x": x}, precision=precision), x, pad, group)


def test_all_passes_where_they_are_chosen():
    x = draw(5, 128, 14, 14)
    check(build(conv(128), {"x": x}), x, (1, 1), 1)
    x = draw(16, 32, 16, 16)
    check(build(conv(48, (2, 2), window=5), {"x": x}), x, (2, 2), 1)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize("channels", [3, 8, 15])
def test_too_few_channels_for_a_vector(channels):
    x = draw(2, channels, 9, 6)
    check(build(conv(20), {"x": x}), x, (1, 1), 1)


@pytest.mark.usefixtures("few_products")
def test_shapes_that_change():
    net = build(conv(32), {"x": draw(2, 16, 9, 9)})
    for shape in [(2, 16, 9, 9), (1, 16, 21, 4), (3, 16, 2, 6)]:
        net.blobs["x"].reshape(*shape)
        net.reshape()
        check(net, draw(*shape, seed=shape[2]), (1, 1), 1)


@pytest.mark.usefixtures("few_products")
def test_several_bottoms_add_to_one_gradient():
    x, x2 = draw(2, 16, 6, 7), draw(2, 16, 6, 7, seed=3)
    net = build(conv(16, bottom="x x2"), {"x": x, "x2": x2})
    net.forward()
    slopes = backward(net)
    weights, bias = net.params["l"]
    first = Direct(x, weights.data, bias.data, slopes["y"], (1, 1), 1)
    second = Direct(x2, weights.data, bias.data, slopes["y2"], (1, 1), 1)
    near(net.blobs["y2"].data, second.y)
    near(net.blobs["x2"].diff, second.x)
    near(weights.diff, first.weights + second.weights)
    near(bias.diff, first.bias + second.bias)


@pytest.mark.usefixtures("few_products")
def test_gradients():
    x = draw(1, 16, 5, 3)
    check_gradients(conv(16, (1, 0), rest="bias_term: false"), {"x": x}, tolerance=2e-2)


@pytest.mark.usefixtures("few_products")
@each_precision
def test_with_a_fused_relu(precision):
    x = rounded(draw(2, 32, 10, 7))
    relu = 'layer { name: "r" type: "ReLU" bottom: "y" top: "y" }'
    net = build(
        conv(48) + relu,
        {"x": x},
        force=False,
        phase=caffe.TEST,
        precision=precision,
        keep_blobs=False,
    )
    net.forward()
    weights, bias = (blob.data for blob in net.params["l"])
    want = Direct(x, weights, bias, np.zeros((2, 48, 10, 7), np.float32), (1, 1), 1)
    near(net.blobs["y"].data, np.maximum(want.y, 0), precision == "bf16")


@pytest.mark.usefixtures("few_products")
@each_precision
def test_with_a_fused_scale_and_a_residual_sum(precision):
    x, other = rounded(draw(2, 32, 10, 7)), rounded(draw(2, 48, 10, 7, seed=2))
    behind = """
        layer { name: "s" type: "Scale" bottom: "y" top: "y" scale_param { bias_term: true } }
        layer { name: "e" type: "Eltwise" bottom: "other" bottom: "y" top: "z" }
        layer { name: "r" type: "ReLU" bottom: "z" top: "z" }
    """
    net = build(
        conv(48) + behind,
        {"x": x, "other": other},
        force=False,
        phase=caffe.TEST,
        precision=precision,
        keep_blobs=False,
    )
    factor, shift = draw(48, seed=4), draw(48, seed=5)
    net.params["s"][0].data[...], net.params["s"][1].data[...] = factor, shift
    net.forward()
    weights, bias = (blob.data for blob in net.params["l"])
    want = Direct(x, weights, bias, np.zeros_like(other), (1, 1), 1).y
    want = want * factor[:, None, None] + shift[:, None, None] + other
    near(net.blobs["z"].data, np.maximum(want, 0), precision == "bf16")


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = native.threads()
    native.set_threads(count)
    try:
        yield
    finally:
        native.set_threads(before)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize(("window", "pad"), [(3, 1), (5, 2), (5, 0)])
@each_precision
def test_any_number_of_threads_gives_the_same(window, pad, precision):
    found = []
    for count in (1, 2, 3):
        with threads(count):
            text = conv(64, (pad, pad), group=2, window=window)
            net = build(text, {"x": draw(12, 64, 19, 18)}, precision=precision)
            for number, blob in enumerate(net.params["l"]):
                blob.data[...] = draw(*blob.data.shape, seed=number)
            net.forward()
            backward(net)
            found.append([net.blobs["y"].data.copy(), net.blobs["x"].diff.copy()])
            found[-1] += [blob.diff.copy() for blob in net.params["l"]]
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize("value", [np.nan, np.inf])
@each_precision
def test_what_is_not_finite_stays_in_the_tiles_that_see_it(value, precision):
    x = draw(2, 16, 16, 16)
    x[1, 3, 6, 6] = value
    net = build(conv(16), {"x": x}, precision=precision)
    net.forward()
    wrong = ~np.isfinite(net.blobs["y"].data)
    assert wrong[1, :, 5:8, 5:8].all()
    assert wrong[1, :, 4:8, 4:8].all()
    wrong[1, :, 4:8, 4:8] = False
    assert not wrong.any()
