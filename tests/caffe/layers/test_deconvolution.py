"""Deconvolution at published sizes: oneDNN 3.2 adds a bias several times (docs/decisions/0017).

tests/fuzz/test_kernels.py has such layers with drawn weights, under other instruction sets, too.
"""

from __future__ import annotations

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer

SHAPES = (
    ((1, 256, 16, 16), 128, "kernel_size: 4 stride: 2 pad: 1"),
    ((1, 256, 9, 7), 64, "kernel_size: 4 stride: 2 pad: 1"),
    ((1, 512, 5, 5), 256, "kernel_size: 4 stride: 2 pad: 1"),
    ((1, 128, 7, 7), 64, "kernel_size: 4 stride: 4"),
    ((1, 64, 9, 9), 32, "kernel_size: 6 stride: 2 pad: 2"),
    ((1, 64, 9, 9), 32, "kernel_size: 8 stride: 4 pad: 2"),
    ((1, 32, 5, 5), 32, "kernel_size: 16 stride: 8 pad: 4"),
    ((3, 64, 7, 10), 20, "kernel_size: 16 stride: 2 pad_h: 3 pad_w: 0"),
    ((3, 32, 18, 9), 32, "kernel_size: 16 stride: 2 pad_h: 2 pad_w: 4"),
    ((3, 64, 4, 4), 1, "kernel_size: 16 stride: 2 pad: 3"),
    ((1, 16, 5, 6), 16, "kernel_size: 32 stride: 16"),
    ((1, 21, 3, 4), 21, "kernel_size: 64 stride: 32"),
)


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST], ids=["train", "test"])
@pytest.mark.parametrize("precision", ["float32", *(["bf16"] if has_bf16() else [])])
@pytest.mark.parametrize(("shape", "outputs", "options"), SHAPES, ids=lambda one: str(one))
def test_the_bias_is_added_once(
    shape: tuple[int, ...], outputs: int, options: str, precision: str, phase: int
) -> None:
    text = (
        f'layer {{ name: "up" type: "Deconvolution" bottom: "data" top: "up" '
        f"convolution_param {{ num_output: {outputs} {options} }} }}"
    )
    message = parse_net(input_layer("data", shape) + text)
    net = caffe.Net.from_proto(message, phase, precision=precision)
    bias = (np.arange(outputs) - 3) / 8  # multiples of this are exact in eight bits
    bias = bias.clip(-3, 3)
    net.params["up"][1].data[...] = bias
    found = net.forward(data=np.ones(shape, np.float32))["up"]
    np.testing.assert_array_equal(found, np.broadcast_to(bias[:, None, None], found.shape))
