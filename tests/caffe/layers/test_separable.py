"""Windows by channel and the product behind them, as one pass in bfloat16, against float64.

In float32 they are two passes, over blocks of channels where the processor has AVX-512.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.native import has_bf16
from tests.caffe.gradient import build
from tests.caffe.layers.oracle import same_bits
from tests.fuzz.kernels.case import Case, check, draw_params
from tests.fuzz.kernels.sizes import text

needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")
each_precision = pytest.mark.parametrize(
    "precision", ["float32", pytest.param("bf16", marks=needs_bf16)]
)
INFERENCE = {"phase": "TEST", "keep_blobs": False, "backward": False}


def separable(channels, outputs, window, normal=(True, True), relu=(True, True)) -> str:
    layers = ""
    convolutions = (
        ("deep", "data", f"num_output: {channels} group: {channels} {window}"),
        ("point", "deep", f"num_output: {outputs} kernel_size: 1"),
    )
    for (name, bottom, options), is_normal, clips in zip(convolutions, normal, relu, strict=True):
        layers += text(name, "Convolution", bottom, name, f"convolution_param {{ {options} }}")
        if is_normal:
            layers += text(f"{name}_bn", "BatchNorm", name, name)
            layers += text(f"{name}_scale", "Scale", name, name, "scale_param { bias_term: true }")
        layers += text(f"{name}_relu", "ReLU", name, name) if clips else ""
    return layers


@each_precision
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
    shape = (size[0], channels, max(size[1], reach), max(size[2], reach))
    window = f"kernel_size: {kernel} stride: {stride} pad: {pad} dilation: {dilation}"
    layers = separable(channels, outputs, window, normal, relu)
    case = Case("chain", layers, {"data": shape}, precision, seed=seed).but(**INFERENCE)
    assert not check(case), case


@needs_bf16
@pytest.mark.parametrize(
    ("shape", "outputs", "stride"),
    [
        ((2, 32, 40, 40), 64, 1),  # several blocks of pixels
        ((1, 64, 29, 30), 128, 2),
        ((3, 512, 14, 14), 96, 1),
        ((2, 1056, 7, 7), 40, 1),
    ],
)
def test_sums_of_nets_shapes(shape, outputs, stride):
    layers = separable(shape[1], outputs, f"kernel_size: 3 stride: {stride} pad: 1")
    assert not check(Case("chain", layers, {"data": shape}, "bf16").but(**INFERENCE))


LAYERS = separable(48, 40, "kernel_size: 3 pad: 1")
DATA = np.random.default_rng(2).standard_normal((3, 48, 17, 19), np.float32)


def net_of(layers: str = LAYERS, precision: str = "bf16", keep_blobs: bool = False) -> caffe.Net:
    inputs = {"data": DATA}
    net = build(layers, inputs, 1, force=False, precision=precision, keep_blobs=keep_blobs)
    draw_params(net, 1)
    return net


@pytest.mark.parametrize("name", ["DepthwiseConvolution", "ConvolutionDepthwise"])
@each_precision
def test_the_names_of_the_forks_change_no_bit(name, precision):
    layers = LAYERS.replace('name: "deep" type: "Convolution"', f'name: "deep" type: "{name}"')
    results = [net_of(one, precision).forward()["point"] for one in (LAYERS, layers)]
    np.testing.assert_array_equal(*results)


@needs_bf16
def test_threads_change_no_bit():
    same_bits(lambda: [net_of().forward()["point"]])


@needs_bf16
def test_parts_of_the_net_agree_with_the_whole():
    whole, halves = net_of().forward()["point"], net_of()
    halves.forward(end="deep_scale")
    halves.forward(start="deep_relu")
    near = 2.0**-6 * np.abs(whole).max()
    for values in (net_of(keep_blobs=True).forward()["point"], halves.blobs["point"].data):
        np.testing.assert_allclose(values, whole, rtol=0, atol=near)


@needs_bf16
def test_a_blob_between_them_that_is_asked_for_has_values():
    whole, net = net_of().forward()["point"], net_of()
    middle = net.forward(blobs=["deep"])["deep"]
    assert middle.min() == 0
    assert middle.max() > 0
    near = 2.0**-6 * np.abs(whole).max()
    np.testing.assert_allclose(net.blobs["point"].data, whole, rtol=0, atol=near)


@needs_bf16
def test_new_weights_are_read():
    net = net_of()
    before = np.array(net.forward()["point"])
    for name in ("deep", "point"):
        net.params[name][0].data[...] *= 2
        after = np.array(net.forward()["point"])
        assert np.abs(after - before).max() > 0.1 * np.abs(before).max()
        before = after
