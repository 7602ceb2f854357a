"""Layers between convolutions of a bf16 net: their blobs and gradients hold bfloat16, and are what
the layer makes in double precision of what it read, rounded once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet import caffe
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.layers.oracle import layer_text

pytestmark = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

ULP = 2.0**-8
"""Half a step of bfloat16 is at most this share of a value: what rounding once may take."""
Array = Any


def rounded(x: Array) -> Array:
    """To bfloat16 and back."""
    whole = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


def is_narrow(x: Array) -> bool:
    return bool((np.ascontiguousarray(x, np.float32).view(np.uint32) & 0xFFFF == 0).all())


def near(got: Array, want: Array, slack: float = 1e-5) -> None:
    """As `want` rounded once: half a step apart, or where sums cancel a little of the largest."""
    most = np.abs(want).max(initial=0)
    np.testing.assert_array_less(np.abs(got - want), np.abs(want) * ULP + most * slack + 1e-30)


def conv(bottom: str, top: str, outputs: int) -> str:
    options = f"num_output: {outputs} kernel_size: 1 weight_filler {{ type: 'xavier' }}"
    return (
        f"layer {{ name: '{top}' type: 'Convolution' bottom: '{bottom}' top: '{top}' "
        f"convolution_param {{ {options} bias_filler {{ type: 'gaussian' }} }} }}\n"
    )


class Sandwich:
    """A layer between convolutions, whose bottoms and top are kept: what it reads is bfloat16."""

    def __init__(
        self, shape: tuple[int, ...], layer: str, bottoms: int = 1, outputs: int | None = None
    ) -> None:
        images, channels, height, width = shape
        text = "force_backward: true\n" + input_layer("data", (images, 3, height, width))
        text += "".join(conv("data", name, channels) for name in "ab"[:bottoms])
        text += layer + conv("y", "last", outputs or 8)
        self.net = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=2, precision="bf16")
        rng = np.random.default_rng(4)
        for blobs in self.net.params.values():
            for blob in blobs:
                blob.data[...] += rng.uniform(-0.5, 0.5, blob.data.shape)
        self.net.blobs["data"].data[...] = rng.standard_normal((images, 3, height, width))
        self.net.forward()
        self.net.clear_param_diffs()
        self.net.blobs["last"].diff[...] = rng.standard_normal(self.net.blobs["last"].shape)
        self.net.backward()

    def data(self, name: str) -> Array:
        return self.net.blobs[name].data.astype(np.float64)

    def diff(self, name: str) -> Array:
        return self.net.blobs[name].diff.astype(np.float64)

    def params(self, number: int) -> tuple[Array, Array]:
        blob = self.net.params["l"][number]
        return blob.data.astype(np.float64), blob.diff.astype(np.float64)

    def check(self, y: Array, *slopes: Array, slack: float = 1e-5) -> None:
        near(self.data("y"), y, slack)
        for name, slope in zip("ab", slopes, strict=False):
            near(self.diff(name), slope, slack)
        for name in ("a", "y"):
            assert is_narrow(self.net.blobs[name].data), name
            assert is_narrow(self.net.blobs[name].diff), name


SHAPES = st.tuples(
    st.integers(1, 5),
    st.one_of(st.integers(1, 40), st.sampled_from([48, 64, 96])),
    st.integers(1, 11),
    st.integers(1, 11),
)
some = settings(deadline=None, max_examples=15)


def wide(values: Array) -> Array:
    return values[:, None, None]


@some
@given(SHAPES.filter(lambda shape: shape[0] * shape[2] * shape[3] > 3))
def test_batch_norm_of_any_shape(shape):
    made = Sandwich(shape, layer_text("BatchNorm", "", "a", "y"))
    x, dy = made.data("a"), made.diff("y")
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    factor = 1 / np.sqrt(variance + 1e-5)
    normal = (x - wide(mean)) * wide(factor)
    slope = dy - wide(dy.mean((0, 2, 3))) - normal * wide((dy * normal).mean((0, 2, 3)))
    # Of few values the variance is so small that float32's own errors show.
    made.check(normal, slope * wide(factor), slack=1e-3)


@some
@given(SHAPES, st.booleans())
def test_scale_and_bias_of_any_shape(shape, biased):
    options = f"scale_param {{ bias_term: {str(biased).lower()} filler {{ type: 'gaussian' }} }}"
    made = Sandwich(shape, layer_text("Scale", options, "a", "y"))
    x, dy = made.data("a"), made.diff("y")
    factor, slope = made.params(0)
    shift = made.params(1)[0] if biased else np.zeros(shape[1])
    made.check(x * wide(factor) + wide(shift), dy * wide(factor))
    np.testing.assert_allclose(slope, (x * dy).sum((0, 2, 3)), rtol=1e-4, atol=1e-4)
    if biased:
        np.testing.assert_allclose(made.params(1)[1], dy.sum((0, 2, 3)), rtol=1e-4, atol=1e-4)


@some
@given(SHAPES)
def test_bias_of_any_shape(shape):
    made = Sandwich(
        shape, layer_text("Bias", "bias_param { filler { type: 'gaussian' } }", "a", "y")
    )
    dy = made.diff("y")
    shift, slope = made.params(0)
    made.check(made.data("a") + wide(shift), dy)
    np.testing.assert_allclose(slope, dy.sum((0, 2, 3)), rtol=1e-4, atol=1e-4)


@some
@given(SHAPES, st.sampled_from(["SUM", "PROD", "MAX"]))
def test_eltwise_of_any_shape(shape, operation):
    options = f"eltwise_param {{ operation: {operation} COEFFICIENTS }}"
    weighted = "coeff: 1 coeff: -0.5" if operation == "SUM" else ""
    layer = layer_text("Eltwise", options.replace("COEFFICIENTS", weighted), "a b", "y")
    made = Sandwich(shape, layer, 2)
    a, b, dy = made.data("a"), made.data("b"), made.diff("y")
    match operation:
        case "SUM":
            made.check(a - 0.5 * b, dy, -0.5 * dy)
        case "PROD":
            made.check(a * b, b * dy, a * dy)
        case _:
            made.check(np.maximum(a, b), dy * (a > b), dy * (a <= b))


ACTIVATIONS: dict[str, tuple[str, Callable[[Array], Array], Callable[[Array], Array]]] = {
    "ReLU": (
        "relu_param { negative_slope: 0.25 }",
        lambda x: np.where(x > 0, x, 0.25 * x),
        lambda x: np.where(x > 0, 1, 0.25),
    ),
    "Power": ("power_param { power: 2 scale: 3 }", lambda x: (3 * x) ** 2, lambda x: 18 * x),
    "AbsVal": ("", np.abs, np.sign),
    "TanH": ("", np.tanh, lambda x: 1 - rounded(np.tanh(x)).astype(np.float64) ** 2),
}


@some
@given(SHAPES, st.sampled_from(sorted(ACTIVATIONS)))
def test_activations_of_any_shape(shape, kind):
    options, value, slope = ACTIVATIONS[kind]
    made = Sandwich(shape, layer_text(kind, options, "a", "y"))
    x = made.data("a")
    made.check(value(x), slope(x) * made.diff("y"), slack=2e-2 if kind == "TanH" else 1e-4)


@some
@given(SHAPES)
def test_prelu_of_any_shape(shape):
    made = Sandwich(shape, layer_text("PReLU", "", "a", "y"))
    x, dy = made.data("a"), made.diff("y")
    slope, learned = made.params(0)
    made.check(np.where(x > 0, x, wide(slope) * x), np.where(x > 0, dy, wide(slope) * dy))
    want = (np.minimum(x, 0) * dy).sum((0, 2, 3))
    np.testing.assert_allclose(learned, want, rtol=1e-4, atol=1e-4)


@some
@given(
    SHAPES,
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.booleans(),
)
def test_depthwise_convolutions_of_any_shape(shape, kernel, stride, pad, biased):
    images, channels, height, width = shape
    size = [height, width]
    channels = max(channels, 2)
    # Every tap meets the image somewhere; other windows compute in float32.
    size = [max(n, k + s) for n, k, s in zip(size, kernel, stride, strict=True)]
    pad_h, pad_w = (min(p, k - 1) for p, k in zip(pad, kernel, strict=True))
    options = (
        f"num_output: {channels} group: {channels} kernel_h: {kernel[0]} kernel_w: {kernel[1]}"
    )
    options += f" stride_h: {stride[0]} stride_w: {stride[1]} pad_h: {pad_h} pad_w: {pad_w}"
    options += f" bias_term: {str(biased).lower()} weight_filler {{ type: 'gaussian' }}"
    layer = layer_text("Convolution", f"convolution_param {{ {options} }}", "a", "y")
    made = Sandwich((images, channels, size[0], size[1]), layer)
    x, dy, (weights, learned) = made.data("a"), made.diff("y"), made.params(0)
    padded = np.pad(x, ((0, 0), (0, 0), (pad_h, pad_h), (pad_w, pad_w)))
    y, slopes, taught = np.zeros(dy.shape), np.zeros(padded.shape), np.zeros(weights.shape)
    rows, columns = ((n - 1) * s + 1 for n, s in zip(dy.shape[2:], stride, strict=True))
    for i, j in np.ndindex(*kernel):
        seen = np.s_[:, :, i : i + rows : stride[0], j : j + columns : stride[1]]
        y += wide(weights[:, 0, i, j]) * padded[seen]
        slopes[seen] += wide(weights[:, 0, i, j]) * dy
        taught[:, 0, i, j] = (padded[seen] * dy).sum((0, 2, 3))
    if biased:
        y += wide(made.params(1)[0])
        np.testing.assert_allclose(made.params(1)[1], dy.sum((0, 2, 3)), rtol=1e-4, atol=1e-4)
    bottom = slopes[:, :, pad_h : pad_h + size[0], pad_w : pad_w + size[1]]
    made.check(y, bottom, slack=1e-4)
    np.testing.assert_allclose(learned, taught, rtol=1e-4, atol=1e-3)
