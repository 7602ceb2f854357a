"""Kernels of bfloat16 against slow obvious ones: pictures of few channels, maxima of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.test_int8_kernels import largest, window_sums
from tests.caffe.test_precision import convolution, layer, needs_bf16


def narrow(values: Any) -> Any:
    """The nearest numbers of bfloat16, even ones in the middle."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    return kept.astype(np.uint32).view(np.float32)


def is_idle(taps: int, dilation: int, stride: int, pad: int, size: int) -> bool:
    """Whether some tap meets the padding alone, wherever the window lies."""
    places = (size + 2 * pad - (dilation * (taps - 1) + 1)) // stride + 1
    at = np.arange(taps)[:, None] * dilation + np.arange(places) * stride - pad
    return bool((~((at >= 0) & (at < size)).any(1)).any())


def narrow_net(text: str, data: Any, seed: int) -> Any:
    """A net of bfloat16 with drawn weights."""
    message = parse_net(input_layer("data", data.shape) + text)
    net = caffe.Net.from_proto(message, caffe.TEST, precision="bf16", keep_blobs=False)
    rng = np.random.default_rng(seed)
    for blobs in net.params.values():
        for blob in blobs:
            blob.data[...] = rng.standard_normal(blob.data.shape)
    return net


@needs_bf16
@settings(max_examples=80, deadline=None)
@given(
    images=st.integers(1, 3),
    channels=st.integers(1, 5),
    outputs=st.integers(1, 70),
    kernel=st.tuples(st.integers(1, 6), st.integers(1, 12)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    pad=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    dilation=st.integers(1, 2),
    size=st.tuples(st.integers(1, 20), st.integers(1, 70)),
    relu=st.booleans(),
    seed=st.integers(0, 9),
)
def test_a_convolution_of_a_picture(
    images: int,
    channels: int,
    outputs: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int],
    dilation: int,
    size: tuple[int, int],
    relu: bool,
    seed: int,
) -> None:
    reach = (dilation * (kernel[0] - 1) + 1, kernel[1])
    shape = [max(size[i], reach[i] - 2 * pad[i]) for i in range(2)]
    data = np.random.default_rng(seed).standard_normal((images, channels, *shape))
    text = convolution(
        "conv",
        "data",
        f"num_output: {outputs} kernel_h: {kernel[0]} kernel_w: {kernel[1]} stride_h: {stride[0]} "
        f"stride_w: {stride[1]} pad_h: {pad[0]} pad_w: {pad[1]} dilation: {dilation} dilation: 1",
    ) + (layer("relu", "ReLU", "conv", "", "conv") if relu else "")
    net = narrow_net(text, data, seed)
    found = np.array(net.forward(data=data)["conv"])
    weights, bias = (np.array(blob.data) for blob in net.params["conv"])
    # A layer with a tap that always lies outside the picture stays in float32.
    idle = any(
        is_idle(*axis) for axis in zip(kernel, (dilation, 1), stride, pad, shape, strict=True)
    )
    factors = (data, weights) if idle else (narrow(data), narrow(weights))
    want = window_sums(*factors, stride, pad, dilation, np.float64) + bias.reshape(1, -1, 1, 1)
    want = np.maximum(want, 0) if relu else want
    # The sum is rounded once, to eight bits.
    np.testing.assert_allclose(found, want, rtol=2**-8, atol=1e-5 * np.abs(want).max())
    np.testing.assert_array_equal(net.forward(data=data)["conv"], found)


@needs_bf16
@settings(max_examples=60, deadline=None)
@given(
    channels=st.integers(1, 40),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    size=st.tuples(st.integers(4, 12), st.integers(4, 12)),
    slope=st.sampled_from([None, 0.0, 0.25]),
)
def test_the_maximum_of_windows(
    channels: int, kernel: int, stride: int, pad: int, size: tuple[int, int], slope: float | None
) -> None:
    pad, stride = min(pad, kernel - 1), min(stride, kernel)
    data = np.random.default_rng(channels).standard_normal((2, 3, *size)).astype(np.float32)
    relu = f"relu_param {{ negative_slope: {slope} }}"
    text = (
        convolution("conv", "data", f"num_output: {channels} kernel_size: 1")
        + layer("pool", "Pooling", "conv",
                f"pooling_param {{ kernel_size: {kernel} stride: {stride} pad: {pad} }}")
        + ("" if slope is None else layer("relu", "ReLU", "pool", relu, "pool"))
        + convolution("last", "pool", "num_output: 3 kernel_size: 1")
    )  # fmt: skip
    net = narrow_net(text, data, 1)
    found = {name: np.array(net.forward([name], data=data)[name]) for name in ("conv", "pool")}
    np.testing.assert_array_equal(found["conv"], narrow(found["conv"]))
    want = largest(found["conv"], kernel, stride, pad, found["pool"].shape)
    if slope is None:
        np.testing.assert_array_equal(found["pool"], want)
    else:
        want = np.where(want > 0, want, slope * want)
        np.testing.assert_allclose(found["pool"], want, rtol=2**-8, atol=0)
