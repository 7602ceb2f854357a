"""Kernels of eight bits against slow obvious ones: pictures of few channels, maxima of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.test_int8 import needs_int8, rounded
from tests.caffe.test_precision import convolution, layer


def int8_net(text: str, data: Any, steps: dict[str, tuple[float, bool]], seed: int) -> Any:
    """A net of eight bits whose blobs have these steps, with drawn weights, after a pass."""
    message = parse_net(input_layer("data", data.shape) + text)
    for blob, (step, is_signed) in steps.items():
        message.int8_param.values.add(blob=blob, step=step, is_signed=is_signed)
    net = caffe.Net.from_proto(message, caffe.TEST, precision="int8", keep_blobs=False)
    rng = np.random.default_rng(seed)
    for blobs in net.params.values():
        for blob in blobs:
            blob.data[...] = rng.standard_normal(blob.data.shape)
    net.forward(data=data)
    return net


def window_sums(
    values: Any,
    weights: Any,
    stride: tuple[int, int],
    pad: tuple[int, int],
    dilation: int,
    numbers: Any = np.int64,
) -> Any:
    """The sums of products of all windows, in whole numbers or others."""
    rows, columns = weights.shape[2:]
    padded = np.pad(values, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2)).astype(numbers)
    high = (padded.shape[2] - (dilation * (rows - 1) + 1)) // stride[0] + 1
    wide = (padded.shape[3] - columns) // stride[1] + 1
    made = np.zeros((len(values), len(weights), high, wide), numbers)
    for y in range(rows):
        for x in range(columns):
            part = padded[:, :, y * dilation :: stride[0], x :: stride[1]][:, :, :high, :wide]
            made += np.einsum("nchw,oc->nohw", part, weights[:, :, y, x].astype(numbers))
    return made


def largest(values: Any, kernel: int, stride: int, pad: int, shape: tuple[int, ...]) -> Any:
    """The largest value of each window."""
    made = np.full(shape, -np.inf, np.float32)
    padded = np.pad(values, ((0, 0), (0, 0), (pad,) * 2, (pad,) * 2), constant_values=-np.inf)
    padded = np.pad(padded, ((0, 0), (0, 0), (0, kernel), (0, kernel)), constant_values=-np.inf)
    for y in range(shape[2]):
        for x in range(shape[3]):
            at = padded[:, :, y * stride :, x * stride :][:, :, :kernel, :kernel]
            made[:, :, y, x] = at.max((2, 3))
    return made


@needs_int8
@settings(max_examples=60, deadline=None)
@given(
    images=st.integers(1, 3),
    channels=st.integers(1, 5),
    outputs=st.integers(1, 70),
    kernel=st.tuples(st.integers(1, 6), st.integers(1, 17)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    pad=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    dilation=st.integers(1, 2),
    size=st.tuples(st.integers(1, 20), st.integers(1, 70)),
    is_signed=st.booleans(),
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
    is_signed: bool,
    relu: bool,
    seed: int,
) -> None:
    reach = (dilation * (kernel[0] - 1) + 1, kernel[1])
    shape = [max(size[i], reach[i] - 2 * pad[i]) for i in range(2)]
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((images, channels, *shape)).astype(np.float32)
    step = np.float32(0.02)
    text = convolution(
        "conv",
        "data",
        f"num_output: {outputs} kernel_h: {kernel[0]} kernel_w: {kernel[1]} stride_h: {stride[0]} "
        f"stride_w: {stride[1]} pad_h: {pad[0]} pad_w: {pad[1]} dilation: {dilation} dilation: 1",
    ) + (layer("relu", "ReLU", "conv", "", "conv") if relu else "")
    net = int8_net(text, data, {"data": (float(step), is_signed)}, seed)
    weights, bias = (np.array(blob.data) for blob in net.params["conv"])
    by = np.abs(weights).reshape(outputs, -1).max(1).astype(np.float32) / np.float32(127)
    low, high = (-128, 127) if is_signed else (0, 255)
    numbers = np.clip(np.rint(data * (np.float32(1) / step)), low, high)
    sums = window_sums(numbers, rounded(weights, by.reshape(-1, 1, 1, 1)), stride, pad, dilation)
    axes = (1, -1, 1, 1)
    want = sums * (by * step).reshape(axes) + bias.reshape(axes)
    want = np.maximum(want, 0) if relu else want
    found = net.blobs["conv"].data
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    again = np.array(found)
    np.testing.assert_array_equal(net.forward(data=data)["conv"], again)


@needs_int8
@settings(max_examples=40, deadline=None)
@given(
    channels=st.integers(1, 40),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    size=st.tuples(st.integers(4, 12), st.integers(4, 12)),
    is_signed=st.booleans(),
    slope=st.sampled_from([None, 0.0, 0.25]),
)
def test_the_maximum_of_windows(
    channels: int,
    kernel: int,
    stride: int,
    pad: int,
    size: tuple[int, int],
    is_signed: bool,
    slope: float | None,
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
    steps = {"data": (0.03, True), "conv": (0.05, is_signed), "pool": (0.05, is_signed)}
    net = int8_net(text, data, steps, 1)
    found = {name: np.array(net.forward([name], data=data)[name]) for name in ("conv", "pool")}
    values = found["conv"]
    np.testing.assert_allclose(
        values / np.float32(0.05), np.rint(values / np.float32(0.05)), atol=1e-3
    )
    want = largest(values, kernel, stride, pad, found["pool"].shape)
    if slope is not None:
        want = np.where(want > 0, want, slope * want)
    np.testing.assert_allclose(found["pool"], want, atol=0.05 if slope else 0, rtol=0)
