"""Gradients of the layers that multiply by weights, by finite differences, for every option."""

from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients

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
def test_windows(kind: str, option: str) -> None:
    settings, shape = WINDOWS[option]
    check_gradients(
        f'layer {{ name: "l" type: "{kind}" bottom: "x" top: "y" '
        f"convolution_param {{ {settings} {FILL} }} }}",
        {"x": values(shape)},
    )


def test_depthwise() -> None:
    check_gradients(
        'layer { name: "l" type: "DepthwiseConvolution" bottom: "x" top: "y" '
        f"convolution_param {{ num_output: 4 group: 4 kernel_size: 3 pad: 1 {FILL} }} }}",
        {"x": values((2, 4, 4, 3))},
    )


def test_two_bottoms_share_the_weights() -> None:
    check_gradients(
        'layer { name: "l" type: "Convolution" bottom: "x" bottom: "z" top: "y" top: "w" '
        f"convolution_param {{ num_output: 2 kernel_size: 2 {FILL} }} }}",
        {"x": values((2, 2, 3, 3)), "z": values((2, 2, 3, 3)) + 1},
    )


@pytest.mark.parametrize("settings", [FILL, UNBIASED, f"transpose: true {FILL}", f"axis: 2 {FILL}"])
def test_inner_product(settings: str) -> None:
    check_gradients(
        'layer { name: "l" type: "InnerProduct" bottom: "x" top: "y" '
        f"inner_product_param {{ num_output: 5 {settings} }} }}",
        {"x": values((3, 2, 4))},
    )
