"""Layers between convolutions of a bf16 net: their blobs and gradients hold bfloat16, and are what
the layer makes in double precision of what it read, rounded once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet import caffe
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe import reference
from tests.caffe.gradient import input_layer
from tests.caffe.layers.oracle import layer_text
from tests.fuzz.kernels import oracle
from tests.fuzz.kernels.sizes import words

pytestmark = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

ULP = 2.0**-8
"""Half a step of bfloat16 is at most this share of a value: what rounding once may take."""
Array = Any


def rounded(x):
    """To bfloat16 and back."""
    whole = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


def is_narrow(x):
    return bool((np.ascontiguousarray(x, np.float32).view(np.uint32) & 0xFFFF == 0).all())


def near(got, want, slack=1e-5):
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

    def check(self, slack: float = 1e-5, learned: bool = True) -> None:
        """Compare with the oracle's float64, of what the layer itself has read."""
        (layer,) = (one for one in self.net.graph.parameter.layer if one.name == "l")
        blobs = self.net.params.get("l", [])
        xs = [self.net.blobs[name].data.astype(np.float64) for name in layer.bottom]
        own = [blob.data.astype(np.float64) for blob in blobs]
        (y,), pull = LAYERS[layer.type](layer, xs, own, True)
        slopes, grads = pull([self.net.blobs["y"].diff.astype(np.float64)])
        near(self.net.blobs["y"].data, y, slack)
        for name, slope in zip(layer.bottom, slopes, strict=True):
            near(self.net.blobs[name].diff, slope, slack)
        for blob, grad in zip(blobs if learned else (), grads, strict=False):
            np.testing.assert_allclose(blob.diff, grad, rtol=1e-4, atol=1e-3)
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


def elementwise(x, y, slope):
    return [y], lambda dys: ([dys[0] * slope], [])


def shifted(layer, xs, own, train):
    y = xs[0] + own[0][:, None, None]
    return [y], lambda dys: (dys, [dys[0].sum((0, 2, 3))])


def sloped(layer, xs, own, train):
    (x,) = xs
    by = np.where(x > 0, 1, own[0][:, None, None])
    return [x * by], lambda dys: ([dys[0] * by], [(np.minimum(x, 0) * dys[0]).sum((0, 2, 3))])


LAYERS = reference.LAYERS | {
    "Eltwise": oracle.eltwise,
    "Bias": shifted,
    "PReLU": sloped,
    "ReLU": lambda layer, xs, own, train: oracle.relu(xs[0], xs[0] > 0, 0.25),
    "Power": lambda layer, xs, own, train: elementwise(xs[0], (3 * xs[0]) ** 2, 18 * xs[0]),
    "AbsVal": lambda layer, xs, own, train: elementwise(xs[0], np.abs(xs[0]), np.sign(xs[0])),
    "TanH": lambda layer, xs, own, train: elementwise(
        xs[0], np.tanh(xs[0]), 1 - rounded(np.tanh(xs[0])).astype(np.float64) ** 2
    ),
    "Convolution": oracle.convolution,
}
"""Of values; the gradient of TanH reads what is stored."""
FILL = "filler { type: 'gaussian' }"
CASES = {
    "scale": ("Scale", f"scale_param {{ {FILL} }}", "a", 1e-5),
    "scale and shift": ("Scale", f"scale_param {{ bias_term: true {FILL} }}", "a", 1e-5),
    "bias": ("Bias", f"bias_param {{ {FILL} }}", "a", 1e-5),
    "sum": ("Eltwise", "eltwise_param { coeff: 1 coeff: -0.5 }", "a b", 1e-5),
    "product": ("Eltwise", "eltwise_param { operation: PROD }", "a b", 1e-5),
    "maximum": ("Eltwise", "eltwise_param { operation: MAX }", "a b", 1e-5),
    "relu": ("ReLU", "relu_param { negative_slope: 0.25 }", "a", 1e-4),
    "power": ("Power", "power_param { power: 2 scale: 3 }", "a", 1e-4),
    "size": ("AbsVal", "", "a", 1e-4),
    "tanh": ("TanH", "", "a", 2e-2),
    "prelu": ("PReLU", "", "a", 1e-5),
}


@pytest.mark.parametrize("case", CASES)
@settings(deadline=None, max_examples=8)
@given(SHAPES)
def test_layers_of_any_shape(case, shape):
    kind, options, bottoms, slack = CASES[case]
    Sandwich(shape, layer_text(kind, options, bottoms, "y"), len(bottoms.split())).check(slack)


@some
@given(SHAPES.filter(lambda shape: shape[0] * shape[2] * shape[3] > 3))
def test_batch_norm_of_any_shape(shape):
    # Of few values the variance is so small that float32's own errors show.
    Sandwich(shape, layer_text("BatchNorm", "", "a", "y")).check(1e-3, learned=False)


@some
@given(
    SHAPES,
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.booleans(),
)
def test_depthwise_convolutions_of_any_shape(shape, kernel, stride, pad, biased):
    images, channels, *size = shape
    channels = max(channels, 2)
    # Every tap meets the image somewhere; other windows compute in float32.
    size = [max(n, k + s) for n, k, s in zip(size, kernel, stride, strict=True)]
    pad = tuple(min(p, k - 1) for p, k in zip(pad, kernel, strict=True))
    options = f"num_output: {channels} group: {channels} bias_term: {str(biased).lower()} "
    options += words(kernel=kernel, stride=stride, pad=pad)
    options = f"convolution_param {{ {options} weight_filler {{ type: 'gaussian' }} }}"
    layer = layer_text("Convolution", options, "a", "y")
    Sandwich((images, channels, *size), layer).check(1e-4)
