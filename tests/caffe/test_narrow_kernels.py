"""Kernels of bfloat16 against slow obvious ones: pictures of few channels, maxima of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.kernel_cases import Maxima, Picture, draw_weights, maxima, pictures
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
    draw_weights(net, seed)
    return net


@needs_bf16
@settings(max_examples=80, deadline=None)
@given(case=pictures(widest=12))
def test_a_convolution_of_a_picture(case: Picture) -> None:
    data = case.data
    net = narrow_net(case.text, data, case.seed)
    found = np.array(net.forward(data=data)["conv"])
    weights, bias = (np.array(blob.data) for blob in net.params["conv"])
    # A layer with a tap that always lies outside the picture stays in float32.
    axes = zip(case.kernel, (case.dilation, 1), case.stride, case.pad, case.size, strict=True)
    idle = any(is_idle(*axis) for axis in axes)
    values, taps = (data, weights) if idle else (narrow(data), narrow(weights))
    want = case.finished(case.sums(values, taps, np.float64), bias)
    # The sum is rounded once, to eight bits.
    np.testing.assert_allclose(found, want, rtol=2**-8, atol=1e-5 * np.abs(want).max())
    np.testing.assert_array_equal(net.forward(data=data)["conv"], found)


@needs_bf16
@settings(max_examples=60, deadline=None)
@given(case=maxima())
def test_the_maximum_of_windows(case: Maxima) -> None:
    data = case.data
    net = narrow_net(case.text, data, 1)
    found = {name: np.array(net.forward([name], data=data)[name]) for name in ("conv", "pool")}
    np.testing.assert_array_equal(found["conv"], narrow(found["conv"]))
    want = case.of(found["conv"], found["pool"].shape)
    rtol = 2**-8 if case.slope else 0
    np.testing.assert_allclose(found["pool"], want, rtol=rtol, atol=0)


@needs_bf16
@settings(max_examples=40, deadline=None)
@given(
    images=st.integers(1, 20),
    channels=st.integers(1, 40),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_an_inner_product_of_planes(images: int, channels: int, size: tuple[int, int]) -> None:
    """Whatever layout a convolution leaves, its channels are multiplied one after the other."""
    width = channels * size[0] * size[1]
    outputs = 8200 // width + 1  # with fewer weights it is one of float32
    text = convolution("conv", "data", f"num_output: {channels} kernel_size: 1") + layer(
        "ip", "InnerProduct", "conv", f"inner_product_param {{ num_output: {outputs} }}"
    )
    rng = np.random.default_rng(channels)
    data = rng.standard_normal((images, 3, *size)).astype(np.float32)
    net = narrow_net(text, data, channels)
    planes = narrow(net.forward(["conv"], data=data)["conv"])
    weights, bias = (np.array(blob.data) for blob in net.params["ip"])
    want = planes.reshape(images, width).astype(np.float64) @ narrow(weights).T + bias
    found = net.forward(data=data)["ip"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@needs_bf16
@settings(max_examples=80, deadline=None)
@given(
    channels=st.integers(2, 100),
    size=st.tuples(st.integers(1, 2), st.integers(1, 12), st.integers(1, 20)),
    side=st.sampled_from([3, 5]),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pad=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    dilation=st.integers(1, 2),
    bias=st.booleans(),
    adds=st.booleans(),
    relu=st.booleans(),
)
def test_windows_of_one_channel(
    channels: int,
    size: tuple[int, int, int],
    side: int,
    stride: tuple[int, int],
    pad: tuple[int, int],
    dilation: int,
    bias: bool,
    adds: bool,
    relu: bool,
) -> None:
    """Any window, with what is fused behind it; a sum with the bottom where it is as large."""
    reach = dilation * (side - 1) + 1
    if adds:
        stride, pad = (1, 1), (reach // 2, reach // 2)
    images, *rest = size
    height, width = (max(n, reach - 2 * p) for n, p in zip(rest, pad, strict=True))
    numbers = f"num_output: {channels} group: {channels} kernel_size: {side} dilation: {dilation}"
    numbers += f" stride_h: {stride[0]} stride_w: {stride[1]} pad_h: {pad[0]} pad_w: {pad[1]}"
    text = convolution("conv", "data", f"{numbers} bias_term: {str(bias).lower()}")
    if adds:
        text += 'layer { name: "sum" type: "Eltwise" bottom: "conv" bottom: "data" top: "sum" }'
    last = "sum" if adds else "conv"
    text += f'layer {{ name: "relu" type: "ReLU" bottom: "{last}" top: "{last}" }}' if relu else ""
    rng = np.random.default_rng(channels)
    data = rng.standard_normal((images, channels, height, width)).astype(np.float32)
    net = narrow_net(text, data, channels)
    found = np.array(net.forward(data=data)[last])
    weights = np.array(net.params["conv"][0].data)
    shift = np.array(net.params["conv"][1].data) if bias else np.zeros(channels)

    axes = list(zip(stride, pad, (height, width), strict=True))
    idle = any(is_idle(side, dilation, *axis) for axis in axes)
    values, taps = (data, weights) if idle else (narrow(data), narrow(weights))
    rows, columns = ((n + 2 * p - reach) // s + 1 for s, p, n in axes)
    wide = np.pad(values.astype(np.float64), ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    want = np.zeros((images, channels, rows, columns)) + shift[:, None, None]
    for y, x in np.ndindex(side, side):
        seen = wide[:, :, y * dilation :: stride[0], x * dilation :: stride[1]]
        want += seen[:, :, :rows, :columns] * taps[:, 0, y, x, None, None]
    if adds:
        want += data if idle else narrow(data)
    want = np.maximum(want, 0) if relu else want
    assert found.shape == want.shape
    near = 1e-5 * np.abs(want).max()
    np.testing.assert_allclose(found, want, rtol=2**-8, atol=near)
    np.testing.assert_array_equal(net.forward(data=data)[last], found)
