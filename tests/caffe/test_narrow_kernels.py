"""Kernels of eight bits and of bfloat16 against slow obvious ones."""

from math import erf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.kernel_cases import draw_weights, maxima, pictures
from tests.caffe.test_int8 import needs_int8, rounded
from tests.caffe.test_precision import convolution, layer, needs_bf16
from tests.fuzz.kernels.case import Case, check
from tests.fuzz.kernels.sizes import words


def int8_net(text, data, steps, seed):
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
def test_a_convolution_of_a_picture(case, is_signed):
    data, step = case.data, np.float32(0.02)
    net = int8_net(case.text, data, {"data": (float(step), is_signed)}, case.seed)
    weights, bias = (np.array(blob.data) for blob in net.params["conv"])
    by = np.abs(weights).reshape(case.outputs, -1).max(1).astype(np.float32) / np.float32(127)
    low, high = (-128, 127) if is_signed else (0, 255)
    numbers = np.clip(np.rint(data * (np.float32(1) / step)), low, high)
    sums = case.sums(numbers, rounded(weights, by.reshape(-1, 1, 1, 1)), np.int64)
    want = case.finished(sums * (by * step).reshape(1, -1, 1, 1), bias)
    actual = net.blobs["conv"].data
    np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    again = np.array(actual)
    np.testing.assert_array_equal(net.forward(data=data)["conv"], again)


@needs_int8
@settings(max_examples=40, deadline=None)
@given(case=maxima(), is_signed=st.booleans())
def test_the_maximum_of_windows(case, is_signed):
    data = case.data
    steps = {"data": (0.03, True), "conv": (0.05, is_signed), "pool": (0.05, is_signed)}
    net = int8_net(case.text, data, steps, 1)
    actual = {name: np.array(net.forward([name], data=data)[name]) for name in ("conv", "pool")}
    values = actual["conv"]
    np.testing.assert_allclose(
        values / np.float32(0.05), np.rint(values / np.float32(0.05)), atol=1e-3
    )
    want = case.of(values, actual["pool"].shape)
    np.testing.assert_allclose(actual["pool"], want, atol=0.05 if case.slope else 0, rtol=0)


def products_of(numbers, weights):
    """The sums of whole numbers for each output, and what the weights are multiples of."""
    by = np.abs(weights).max(1).astype(np.float32) / np.float32(127)
    return numbers.astype(np.int64) @ rounded(weights, by[:, None]).astype(np.int64).T, by


ENDINGS = {
    "GELU": np.vectorize(lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2)))),
    "ReLU": lambda x: np.maximum(x, 0),
    "Swish": lambda x: x / (1 + np.exp(-x)),
}


@needs_int8
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(("rows", "inputs", "inner"), [(1, 384, 1536), (77, 257, 129), (3, 16, 5)])
def test_products_their_functions_and_their_sum(ending, in_place, rows, inputs, inner):
    """What a transformer has behind its attention: x + W2 f(W1 x)."""
    data = np.random.default_rng(rows).standard_normal((rows, inputs)).astype(np.float32)
    middle = "one" if in_place else "f"
    text = layer("one", "InnerProduct", "data", f"inner_product_param {{ num_output: {inner} }}")
    text += layer("f", ending, "one", "", middle)
    text += layer("two", "InnerProduct", middle, f"inner_product_param {{ num_output: {inputs} }}")
    text += layer("sum", "Eltwise", "data two") + layer("end", "ReLU", "sum", "", "sum")
    signed, step = ending != "ReLU", np.float32(0.02)
    steps = {"data": (0.03, True), middle: (float(step), signed)}
    net = int8_net(text, data, steps, 1)
    (first, bias), (second, shift) = (
        (np.array(blob.data) for blob in net.params[name]) for name in ("one", "two")
    )
    x_step = np.float32(0.03)
    sums, by = products_of(rounded(data * (np.float32(1) / x_step), 1), first)
    values = ENDINGS[ending](sums * (by.astype(np.float64) * x_step) + bias)
    numbers = rounded(values / step, 1, signed)
    sums, by = products_of(numbers, second)
    want = np.maximum(sums * (by.astype(np.float64) * step) + shift + data, 0)
    # A number between two multiples may be rounded either way: one of many terms moves by a step.
    near = np.abs(values / step - np.floor(values / step) - 0.5) < 2e-3
    moved = near.astype(float) @ np.abs(second).T * step
    assert near.mean() < 0.01
    assert (np.abs(net.blobs["sum"].data - want) <= moved * 1.01 + 2e-4).all()
    net.time_layers(True)
    net.forward()
    times = dict(zip(net._layer_names, net.layer_times()[0], strict=True))
    assert times["f"] == times["sum"] == times["end"] == 0, "part of the products"


@needs_int8
@pytest.mark.parametrize(
    ("channels", "outputs", "group"), [(80, 384, 1), (33, 17, 1), (24, 24, 24)]
)
@pytest.mark.parametrize(("length", "kernel", "stride"), [(100, 3, 2), (9, 8, 1)])
def test_a_convolution_of_sequences(channels, outputs, group, length, kernel, stride):
    data = np.random.default_rng(3).standard_normal((2, channels, length)).astype(np.float32)
    text = layer(
        "conv",
        "Convolution",
        "data",
        f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} stride: {stride} "
        f"pad: 1 group: {group} }}",
    )
    text += layer("act", "GELU", "conv", "", "conv")
    step = np.float32(0.03)
    net = int8_net(text, data, {"data": (float(step), True)}, 5)
    weights, bias = (np.array(blob.data) for blob in net.params["conv"])
    by = np.abs(weights).reshape(outputs, -1).max(1).astype(np.float32) / np.float32(127)
    whole = rounded(weights, by.reshape(-1, 1, 1)).astype(np.int64)
    numbers = rounded(data * (np.float32(1) / step), 1).astype(np.int64)
    numbers = np.pad(numbers, ((0, 0), (0, 0), (1, 1)))
    own, places = channels // group, (length + 2 - kernel) // stride + 1
    sums = np.zeros((2, outputs, places), np.int64)
    for o in range(outputs):
        first = o // (outputs // group) * own
        for at in range(places):
            window = numbers[:, first : first + own, at * stride : at * stride + kernel]
            sums[:, o, at] = (window * whole[o]).sum((1, 2))
    exact = sums * (by.astype(np.float64) * step).reshape(-1, 1) + bias.reshape(-1, 1)
    want = ENDINGS["GELU"](exact)
    # Where oneDNN would lose weights of eight taps, they are multiplied in float32.
    close = 0.1 if (group, kernel) == (24, 8) else 2e-4
    np.testing.assert_allclose(net.blobs["conv"].data, want, rtol=close, atol=close)


INFERENCE = {"phase": "TEST", "keep_blobs": False, "backward": False}


def is_right_in_bf16(layers, shape, seed=0):
    case = Case("chain", layers, {"data": shape}, "bf16", seed=seed).but(**INFERENCE)
    assert not check(case), case


@needs_bf16
@settings(max_examples=80, deadline=None)
@given(case=pictures(widest=12))
def test_a_convolution_of_a_picture_in_bfloat16(case):
    is_right_in_bf16(case.text, case.data.shape, case.seed)


@needs_bf16
@settings(max_examples=60, deadline=None)
@given(case=maxima())
def test_the_maximum_of_windows_in_bfloat16(case):
    is_right_in_bf16(case.text, case.data.shape)


@needs_bf16
@settings(max_examples=40, deadline=None)
@given(
    images=st.integers(1, 20),
    channels=st.integers(1, 40),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_an_inner_product_of_planes(images, channels, size):
    """Whatever layout a convolution leaves, its channels are multiplied one after the other."""
    outputs = 8200 // (channels * size[0] * size[1]) + 1  # with fewer weights it is of float32
    text = convolution("conv", "data", f"num_output: {channels} kernel_size: 1")
    text += layer("ip", "InnerProduct", "conv", f"inner_product_param {{ num_output: {outputs} }}")
    is_right_in_bf16(text, (images, 3, *size))


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
def test_windows_of_one_channel(channels, size, side, stride, pad, dilation, bias, adds, relu):
    """Any window, with what is fused behind it; a sum with the bottom where it is as large."""
    reach = dilation * (side - 1) + 1
    if adds:
        stride, pad = (1, 1), (reach // 2, reach // 2)
    images, *rest = size
    height, width = (max(n, reach - 2 * p) for n, p in zip(rest, pad, strict=True))
    numbers = f"num_output: {channels} group: {channels} kernel_size: {side} dilation: {dilation} "
    numbers += words(stride=stride, pad=pad)
    text = convolution("conv", "data", f"{numbers} bias_term: {str(bias).lower()}")
    last = "sum" if adds else "conv"
    text += layer("sum", "Eltwise", "conv data") if adds else ""
    text += layer("relu", "ReLU", last, "", last) if relu else ""
    is_right_in_bf16(text, (images, channels, height, width))
