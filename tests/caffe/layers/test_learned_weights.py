"""Convolutions in bfloat16: their weights are rounded into the blocks that are multiplied, and the
gradients of these are sums in float32 that do not depend on the number of threads."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet import caffe
from sparknet.native import has_bf16, set_threads, threads
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.layers.test_narrow import near, rounded

pytestmark = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

Array = Any


def layer(bottom: str, top: str, outputs: int, options: str) -> str:
    return (
        f"layer {{ name: '{top}' type: 'Convolution' bottom: '{bottom}' top: '{top}' "
        f"convolution_param {{ num_output: {outputs} bias_term: false {options} "
        "weight_filler { type: 'xavier' } } }\n"
    )


class Taps:
    """A convolution in double precision, tap by tap."""

    def __init__(self, x: Array, dy: Array, kernel: Array, pad: Array, stride: int) -> None:
        self.x, self.dy, self.kernel, self.pad, self.stride = x, dy, kernel, pad, stride
        self.padded = np.pad(x, ((0, 0), (0, 0), (pad[0], pad[0]), (pad[1], pad[1])))

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        down, across = ((size - 1) * self.stride + 1 for size in self.dy.shape[2:])
        for i, j in np.ndindex(*self.kernel):
            rows = slice(i, i + down, self.stride)
            yield (..., i, j), (..., rows, slice(j, j + across, self.stride))

    def learned(self) -> Array:
        want = np.empty((self.dy.shape[1], self.x.shape[1], *self.kernel))
        for tap, part in self:
            want[tap] = np.einsum("noyx,niyx->oi", self.dy, self.padded[part])
        return want

    def forward(self, weights: Array) -> Array:
        return sum(
            np.einsum("niyx,oi->noyx", self.padded[part], weights[tap]) for tap, part in self
        )

    def backward(self, weights: Array) -> Array:
        want = np.zeros_like(self.padded)
        for tap, part in self:
            want[part] += np.einsum("noyx,oi->niyx", self.dy, weights[tap])
        (top, left), (height, width) = self.pad, self.x.shape[2:]
        return want[..., top : top + height, left : left + width]


def with_threads(count: int, net: Any, before: Array) -> Array:
    usual = threads()
    try:
        set_threads(count)
        net.params["y"][0].diff[...] = before
        net.backward()
        return net.params["y"][0].diff.copy()
    finally:
        set_threads(usual)


CHANNELS = st.sampled_from([32, 64, 96, 128, 160])
SIZES = st.integers(3, 14)


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_weights_of_any_shape(data):
    images, height, width = data.draw(st.integers(1, 5)), data.draw(SIZES), data.draw(SIZES)
    inputs, outputs = data.draw(CHANNELS), data.draw(CHANNELS)
    kernel = data.draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (1, 3), (3, 1)]))
    stride = data.draw(st.integers(1, 3)) if kernel == (1, 1) else 1
    pad = tuple(data.draw(st.integers(0, size - 1)) for size in kernel)
    options = f"kernel_h: {kernel[0]} kernel_w: {kernel[1]} pad_h: {pad[0]} pad_w: {pad[1]}"
    options += f" stride: {stride}"
    text = "force_backward: true\n" + input_layer("data", (images, 8, height, width))
    text += layer("data", "x", inputs, "kernel_size: 1") + layer("x", "y", outputs, options)
    text += layer("y", "z", 8, "kernel_size: 1")
    net = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=2, precision="bf16")
    rng = np.random.default_rng(4)
    net.blobs["data"].data[...] = rng.standard_normal((images, 8, height, width))
    before = rng.standard_normal(net.params["y"][0].diff.shape)
    net.forward()
    net.blobs["z"].diff[...] = rng.standard_normal(net.blobs["z"].shape)
    actual = [with_threads(count, net, before) for count in (1, 3)]
    np.testing.assert_array_equal(*actual)
    x, dy = (values.astype(np.float64) for values in (net.blobs["x"].data, net.blobs["y"].diff))
    taps = Taps(x, dy, kernel, pad, stride)
    weights = rounded(net.params["y"][0].data).astype(np.float64)
    near(net.blobs["y"].data, taps.forward(weights))
    near(net.blobs["x"].diff, taps.backward(weights))
    want = taps.learned()
    got = net.params["y"][0].diff.astype(np.float64) - before
    most = np.abs(want).max()
    np.testing.assert_allclose(got, want, atol=2e-5 * most + 1e-6, rtol=0)
