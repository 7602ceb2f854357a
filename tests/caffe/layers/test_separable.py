"""Windows by channel and the product behind them, as one pass in bfloat16, against slow sums.

In float32 they are two passes, over blocks of channels where the processor has AVX-512.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet import native
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.test_narrow_kernels import is_idle

Round = Callable[[Any], Any]

needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

NORMAL = """
layer {{ name: "{0}_bn" type: "BatchNorm" bottom: "{0}" top: "{0}" }}
layer {{ name: "{0}_scale" type: "Scale" bottom: "{0}" top: "{0}"
         scale_param {{ bias_term: true }} }}
"""
RELU = 'layer {{ name: "{0}_relu" type: "ReLU" bottom: "{0}" top: "{0}" }}\n'


def narrow(values: Any) -> Any:
    """Rounded to bfloat16, to even numbers in the middle."""
    whole = np.ascontiguousarray(values, np.float32).view(np.uint32)
    kept = (whole + 0x7FFF + ((whole >> 16) & 1)) & np.uint32(0xFFFF0000)
    return kept.astype(np.uint32).view(np.float32)


def text(
    channels: int, outputs: int, window: str, normal: tuple[bool, bool], relu: tuple[bool, bool]
) -> str:
    made = ""
    options = [
        f"num_output: {channels} group: {channels} {window}",
        f"num_output: {outputs} kernel_size: 1",
    ]
    for i, (name, bottom) in enumerate((("deep", "data"), ("point", "deep"))):
        made += f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"'
        made += f" convolution_param {{ {options[i]} }} }}\n"
        made += NORMAL.format(name) if normal[i] else ""
        made += RELU.format(name) if relu[i] else ""
    return made


def folded(net: Any, name: str, rounds: Round) -> tuple[Any, Any]:
    """Weights and bias with those of BatchNorm and Scale in them."""
    weights, bias = (np.array(blob.data, np.float64) for blob in net.params[name])
    if f"{name}_bn" in net.params:
        mean, variance, count = (np.array(b.data, np.float64) for b in net.params[f"{name}_bn"])
        factor, shift = (np.array(b.data, np.float64) for b in net.params[f"{name}_scale"])
        factor = factor / np.sqrt(variance / count + 1e-5)
        weights *= factor[:, None, None, None]
        bias = (bias - mean / count) * factor + shift
    return rounds(weights).astype(np.float64), bias


def oracle(
    net: Any,
    data: Any,
    window: dict[str, int],
    relu: tuple[bool, bool],
    rounds: Round,
    between: Round = narrow,
) -> Any:
    """Sums of values, of which those between the layers are rounded by `between`, those before
    the first by `rounds`."""
    weights, bias = folded(net, "deep", rounds)
    pad, stride, dilation = window["pad"], window["stride"], window["dilation"]
    wide = np.pad(rounds(data), ((0, 0), (0, 0), (pad, pad), (pad, pad))).astype(np.float64)
    rows, columns = net.blobs["deep"].shape[2:]
    middle = np.zeros((*data.shape[:2], rows, columns)) + bias[:, None, None]
    for y, x in np.ndindex(*weights.shape[2:]):
        seen = wide[:, :, y * dilation :: stride, x * dilation :: stride][:, :, :rows, :columns]
        middle += seen * weights[:, 0, y, x, None, None]
    middle = between(np.maximum(middle, 0) if relu[0] else middle)
    weights, bias = folded(net, "point", between)
    made = np.einsum("nchw,oc->nohw", middle, weights[:, :, 0, 0]) + bias[:, None, None]
    return np.maximum(made, 0) if relu[1] else made


def build(
    layers: str, shape: tuple[int, ...], seed: int, keep: bool = False, precision: str = "bf16"
) -> Any:
    message = parse_net(input_layer("data", shape) + layers)
    net = caffe.Net.from_proto(message, caffe.TEST, precision=precision, keep_blobs=keep)
    rng = np.random.default_rng(seed)
    for name, blobs in net.params.items():
        for blob in blobs:
            draw = rng.random if name.endswith("_bn") else rng.standard_normal
            blob.data[...] = draw(blob.data.shape) + (0.5 if name.endswith("_bn") else 0)
    return net


def check(
    channels: int,
    outputs: int,
    size: tuple[int, int, int],
    window: dict[str, int],
    normal: tuple[bool, bool] = (True, True),
    relu: tuple[bool, bool] = (True, True),
    seed: int = 0,
    precision: str = "bf16",
) -> None:
    options = " ".join(f"{name}: {value}" for name, value in window.items())
    layers = text(channels, outputs, options.replace("kernel:", "kernel_size:"), normal, relu)
    data = np.random.default_rng(seed).standard_normal((size[0], channels, *size[1:]), np.float32)
    net = build(layers, data.shape, seed, precision=precision)
    net.blobs["data"].data[...] = data
    net._forward(0, len(net.layers) - 1)
    got = np.array(net.blobs["point"].data)
    if precision == "float32":
        want = oracle(net, data, window, relu, np.asarray, np.asarray)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5 * np.abs(want).max())
        return
    # As two layers, windows with a tap that never meets a value are float32 (window.cpp).
    taps, dilation = window["kernel"], window["dilation"]
    choices: list[Round] = [narrow]
    if any(is_idle(taps, dilation, window["stride"], window["pad"], side) for side in size[1:]):
        choices.append(np.asarray)
    for rounds in choices:
        want = oracle(net, data, window, relu, rounds)
        # Half a step of bfloat16, and a step that one value between the two may be apart.
        near = 2.0**-8 * np.abs(want) + 2.0**-8 * np.abs(want).max()
        assert got.shape == want.shape
        if (np.abs(got - want) <= near).all():
            return
    raise AssertionError(f"{got} is not near {want}")


@pytest.mark.parametrize("precision", ["float32", pytest.param("bf16", marks=needs_bf16)])
@settings(max_examples=60, deadline=None)
@given(
    channels=st.integers(2, 100),
    outputs=st.integers(1, 100),
    size=st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 20)),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    pad=st.integers(0, 3),
    dilation=st.integers(1, 2),
    normal=st.tuples(st.booleans(), st.booleans()),
    relu=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 99),
)
def test_sums_of_any_shape(
    channels, outputs, size, kernel, stride, pad, dilation, normal, relu, seed, precision
):
    reach = dilation * (kernel - 1) + 1 - 2 * pad
    size = (size[0], max(size[1], reach), max(size[2], reach))
    window = {"kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation}
    check(channels, outputs, size, window, normal, relu, seed, precision)


@needs_bf16
@pytest.mark.parametrize(
    ("channels", "outputs", "size", "stride"),
    [
        (32, 64, (2, 40, 40), 1),  # several blocks of pixels
        (64, 128, (1, 29, 30), 2),
        (512, 96, (3, 14, 14), 1),
        (1056, 40, (2, 7, 7), 1),
    ],
)
def test_sums_of_nets_shapes(channels, outputs, size, stride):
    check(channels, outputs, size, {"kernel": 3, "stride": stride, "pad": 1, "dilation": 1})


@pytest.mark.parametrize("name", ["DepthwiseConvolution", "ConvolutionDepthwise"])
@pytest.mark.parametrize("precision", ["float32", pytest.param("bf16", marks=needs_bf16)])
def test_the_names_of_the_forks_change_no_bit(name, precision):
    data = np.random.default_rng(2).standard_normal((2, 24, 9, 9), np.float32)
    made = []
    for kind in ("Convolution", name):
        layers = text(24, 40, "kernel_size: 3 pad: 1", (True, True), (True, True))
        layers = layers.replace('name: "deep" type: "Convolution"', f'name: "deep" type: "{kind}"')
        net = build(layers, data.shape, 1, precision=precision)
        made.append(np.array(net.forward(data=data)["point"]))
    np.testing.assert_array_equal(made[0], made[1])


LAYERS = text(48, 40, "kernel_size: 3 pad: 1", (True, True), (True, True))
SHAPE = (3, 48, 17, 19)


def result(keep: bool = False, halves: bool = False) -> Any:
    net = build(LAYERS, SHAPE, 1, keep)
    net.blobs["data"].data[...] = np.random.default_rng(2).standard_normal(SHAPE)
    last = len(net.layers) - 1
    middle = net._layer_number("deep_scale")
    for first, stop in [(0, middle), (middle + 1, last)] if halves else [(0, last)]:
        net._forward(first, stop)
    return np.array(net.blobs["point"].data)


@needs_bf16
def test_threads_change_no_bit():
    before, made = native.threads(), []
    try:
        for count in (1, 2, 3):
            native.set_threads(count)
            made.append(result())
    finally:
        native.set_threads(before)
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[0], made[2])


@needs_bf16
def test_parts_of_the_net_agree_with_the_whole():
    whole = result()
    near = 2.0**-6 * np.abs(whole).max()
    np.testing.assert_allclose(result(keep=True), whole, rtol=0, atol=near)
    np.testing.assert_allclose(result(halves=True), whole, rtol=0, atol=near)


@needs_bf16
def test_a_blob_between_them_that_is_asked_for_has_values():
    net = build(LAYERS, SHAPE, 1)
    net.blobs["data"].data[...] = np.random.default_rng(2).standard_normal(SHAPE)
    last = len(net.layers) - 1
    net._forward(0, last)
    whole = np.array(net.blobs["point"].data)
    net = build(LAYERS, SHAPE, 1)
    net.blobs["data"].data[...] = np.random.default_rng(2).standard_normal(SHAPE)
    net.forward(blobs=["deep"])
    middle = np.array(net.blobs["deep"].data)
    assert middle.min() == 0
    assert middle.max() > 0
    near = 2.0**-6 * np.abs(whole).max()
    np.testing.assert_allclose(net.blobs["point"].data, whole, rtol=0, atol=near)


@needs_bf16
def test_new_weights_are_read():
    net = build(LAYERS, SHAPE, 1)
    net.blobs["data"].data[...] = np.random.default_rng(2).standard_normal(SHAPE)
    last = len(net.layers) - 1
    net._forward(0, last)
    before = np.array(net.blobs["point"].data)
    for name in ("deep", "point"):
        net.params[name][0].data[...] *= 2
        net._forward(0, last)
        after = np.array(net.blobs["point"].data)
        assert np.abs(after - before).max() > 0.1 * np.abs(before).max()
        before = after
