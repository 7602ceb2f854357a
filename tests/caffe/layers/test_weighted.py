"""Gradients of the layers that multiply by weights, by finite differences, for every option."""

import numpy as np
import pytest

from tests.caffe.gradient import build, check_gradients
from tests.caffe.layers.passing import backward

FILL = 'weight_filler { type: "gaussian" std: 0.5 } bias_filler { type: "gaussian" std: 0.5 }'
UNBIASED = 'bias_term: false weight_filler { type: "gaussian" std: 0.5 }'
WINDOWS = {
    "plain": ("num_output: 4 kernel_size: 3", (2, 2, 5, 4)),
    "stride and pad": ("num_output: 2 kernel_size: 3 stride: 2 pad: 1", (2, 2, 5, 6)),
    "dilation": ("num_output: 2 kernel_size: 2 dilation: 2", (1, 2, 5, 5)),
    "group": ("num_output: 4 kernel_size: 2 group: 2", (2, 4, 3, 4)),
    "no bias": ("num_output: 2 kernel_size: 2 bias_term: false", (2, 3, 3, 3)),
    "oblong": ("num_output: 2 kernel_h: 1 kernel_w: 3 stride_h: 2 stride_w: 1", (1, 2, 5, 4)),
    "one axis": ("num_output: 2 kernel_size: 3 pad: 1", (2, 3, 5)),
    "three axes": ("num_output: 2 kernel_size: 2", (1, 2, 3, 3, 3)),
    "another axis": ("num_output: 2 kernel_size: 2 axis: 2", (2, 2, 2, 3, 3)),
    "wide": ("num_output: 16 kernel_size: 2", (1, 16, 3, 3)),
}


def values(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("option", WINDOWS)
@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
def test_windows(kind, option):
    settings, shape = WINDOWS[option]
    check_gradients(
        f'layer {{ name: "l" type: "{kind}" bottom: "x" top: "y" '
        f"convolution_param {{ {settings} {FILL} }} }}",
        {"x": values(shape)},
    )


def test_depthwise():
    check_gradients(
        'layer { name: "l" type: "DepthwiseConvolution" bottom: "x" top: "y" '
        f"convolution_param {{ num_output: 4 group: 4 kernel_size: 3 pad: 1 {FILL} }} }}",
        {"x": values((2, 4, 4, 3))},
    )


def test_two_bottoms_share_the_weights():
    check_gradients(
        'layer { name: "l" type: "Convolution" bottom: "x" bottom: "z" top: "y" top: "w" '
        f"convolution_param {{ num_output: 2 kernel_size: 2 {FILL} }} }}",
        {"x": values((2, 2, 3, 3)), "z": values((2, 2, 3, 3)) + 1},
    )


@pytest.mark.parametrize("settings", [FILL, UNBIASED, f"transpose: true {FILL}", f"axis: 2 {FILL}"])
def test_inner_product(settings):
    check_gradients(
        'layer { name: "l" type: "InnerProduct" bottom: "x" top: "y" '
        f"inner_product_param {{ num_output: 5 {settings} }} }}",
        {"x": values((3, 2, 4))},
    )


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
@pytest.mark.filterwarnings("ignore:.*bfloat16")
def test_taps_that_see_nothing_learn_nothing(kind, precision):
    """Another layer's gradients of the same size have just been in the memory that they take."""
    options = "num_output: 16 kernel_size: 5 pad: 2 stride: 2 weight_filler { type: 'xavier' }"
    layers = "".join(
        f"layer {{ name: 'l{bottom}' type: '{kind}' bottom: '{bottom}' top: 'y{bottom}' "
        f"convolution_param {{ {options} }} }}"
        for bottom in ("narrow", "square")
    )
    net = build(
        layers,
        {"narrow": values((2, 16, 8, 1)), "square": values((2, 16, 8, 8))},
        precision=precision,
    )
    for _ in range(2):
        net.forward()
        backward(net)
        actual = net.params["lnarrow"][0].diff
        assert actual[..., 2].any()
        assert not actual[..., [0, 1, 3, 4]].any()


def test_an_empty_result_asks_nothing_of_its_input():
    window = "kernel_size: 3 pad: 1 dilation: 2 stride: 2"
    net = build(
        f"layer {{ name: 'l' type: 'Convolution' bottom: 'x' top: 'y' "
        f"convolution_param {{ num_output: 2 {window} }} }}",
        {"x": values((2, 3, 9, 1))},
    )
    assert net.forward()["y"].shape == (2, 2, 4, 0)
    net.blobs["x"].diff[...] = 3
    backward(net)
    assert not net.blobs["x"].diff.any()
