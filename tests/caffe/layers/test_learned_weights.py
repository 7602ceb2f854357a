"""Convolutions in bfloat16: their weights are rounded into the blocks that are multiplied, and the
gradients of these are sums in float32 that do not depend on the number of threads."""

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
from tests.fuzz.kernels.oracle import convolution

pytestmark = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

Array = Any


def layer(bottom: str, top: str, outputs: int, options: str) -> str:
    return (
        f"layer {{ name: '{top}' type: 'Convolution' bottom: '{bottom}' top: '{top}' "
        f"convolution_param {{ num_output: {outputs} bias_term: false {options} "
        "weight_filler { type: 'xavier' } } }\n"
    )


def with_threads(count, net, before):
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
    weights = rounded(net.params["y"][0].data).astype(np.float64)
    (text_of,) = (one for one in net.graph.parameter.layer if one.name == "y")
    (y,), pull = convolution(text_of, [x], [weights], True)
    (dx,), (want,) = pull([dy])
    near(net.blobs["y"].data, y)
    near(net.blobs["x"].diff, dx)
    got = net.params["y"][0].diff.astype(np.float64) - before
    np.testing.assert_allclose(got, want, atol=2e-5 * np.abs(want).max() + 1e-6, rtol=0)
