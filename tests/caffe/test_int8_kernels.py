"""Kernels of eight bits against slow obvious ones: pictures of few channels, maxima of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.kernel_cases import Maxima, Picture, draw_weights, maxima, pictures
from tests.caffe.test_int8 import needs_int8, rounded


def int8_net(text: str, data: Any, steps: dict[str, tuple[float, bool]], seed: int) -> Any:
    """A net of eight bits whose blobs have these steps, with drawn weights, after a pass."""
    message = parse_net(input_layer("data", data.shape) + text)
    for blob, (step, is_signed) in steps.items():
        message.int8_param.values.add(blob=blob, step=step, is_signed=is_signed)
    net = caffe.Net.from_proto(message, caffe.TEST, precision="int8", keep_blobs=False)
    draw_weights(net, seed)
    net.forward(data=data)
    return net


@needs_int8
@settings(max_examples=60, deadline=None)
@given(case=pictures(widest=17), is_signed=st.booleans())
def test_a_convolution_of_a_picture(case: Picture, is_signed: bool) -> None:
    data, step = case.data, np.float32(0.02)
    net = int8_net(case.text, data, {"data": (float(step), is_signed)}, case.seed)
    weights, bias = (np.array(blob.data) for blob in net.params["conv"])
    by = np.abs(weights).reshape(case.outputs, -1).max(1).astype(np.float32) / np.float32(127)
    low, high = (-128, 127) if is_signed else (0, 255)
    numbers = np.clip(np.rint(data * (np.float32(1) / step)), low, high)
    sums = case.sums(numbers, rounded(weights, by.reshape(-1, 1, 1, 1)), np.int64)
    want = case.finished(sums * (by * step).reshape(1, -1, 1, 1), bias)
    found = net.blobs["conv"].data
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    again = np.array(found)
    np.testing.assert_array_equal(net.forward(data=data)["conv"], again)


@needs_int8
@settings(max_examples=40, deadline=None)
@given(case=maxima(), is_signed=st.booleans())
def test_the_maximum_of_windows(case: Maxima, is_signed: bool) -> None:
    data = case.data
    steps = {"data": (0.03, True), "conv": (0.05, is_signed), "pool": (0.05, is_signed)}
    net = int8_net(case.text, data, steps, 1)
    found = {name: np.array(net.forward([name], data=data)[name]) for name in ("conv", "pool")}
    values = found["conv"]
    np.testing.assert_allclose(
        values / np.float32(0.05), np.rint(values / np.float32(0.05)), atol=1e-3
    )
    want = case.of(values, found["pool"].shape)
    np.testing.assert_allclose(found["pool"], want, atol=0.05 if case.slope else 0, rtol=0)
