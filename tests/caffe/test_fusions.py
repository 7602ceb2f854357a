"""Layers that are computed together give what they give one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet.caffe import TEST, TRAIN, Net
from sparknet.proto import parse_net

NET = """
force_backward: true
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 4 dim: 3 dim: 9 dim: 9 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: CHANNELS kernel_size: 3 bias_term: false
                            weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv"
        scale_param { bias_term: true filler { type: "uniform" min: -1 max: 1 }
                      bias_filler { type: "uniform" min: -1 max: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" relu_param { negative_slope: SLOPE } }
layer { name: "short" type: "Convolution" bottom: "conv" top: "short"
        convolution_param { num_output: CHANNELS kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "conv" bottom: "short" top: "sum" }
"""


def run(phase: int, channels: int, slope: float, forward: str, backward: str) -> list[Any]:
    """Everything that two passes leave, each in one go or layer by layer."""
    text = NET.replace("CHANNELS", str(channels)).replace("SLOPE", str(slope))
    net = Net.from_proto(parse_net(text), phase, seed=3)
    rng = np.random.default_rng(0)
    net.blobs["data"].data[...] = rng.standard_normal((4, 3, 9, 9))
    for statistic in net.params["bn"]:
        statistic.data[...] = rng.random(statistic.shape) + 0.5
    last = len(net.layers) - 1
    for _ in range(2):
        for first, stop in [(0, last)] if forward == "whole" else [(i, i) for i in range(last + 1)]:
            net._forward(first, stop)
        net.blobs["sum"].diff[...] = rng.standard_normal(net.blobs["sum"].shape)
        if backward == "whole":
            net._backward(last, 0)
        elif backward == "halves":
            scale = net._layer_number("scale")
            net._backward(last, scale)
            net._backward(scale - 1, 0)
        else:
            for number in range(last, -1, -1):
                net._backward(number, number)
    blobs = [part for blob in net.blobs.values() for part in (blob.data, blob.diff)]
    params = [part for own in net.params.values() for p in own for part in (p.data, p.diff)]
    return [np.array(part) for part in blobs + params]


@pytest.mark.parametrize("phase", [TRAIN, TEST])
@pytest.mark.parametrize(("channels", "slope"), [(32, 0.0), (5, 0.0), (16, 0.25)])
@pytest.mark.parametrize("backward", ["whole", "halves", "single"])
def test_normalised_layers_agree_with_single_ones(
    phase: int, channels: int, slope: float, backward: str
) -> None:
    single = run(phase, channels, slope, "single", "single")
    for one, other in zip(single, run(phase, channels, slope, "whole", backward), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4 * (np.abs(one).max() + 1e-9))


def test_a_pass_that_starts_within_goes_on_from_what_the_blob_holds() -> None:
    net = Net.from_proto(
        parse_net(NET.replace("CHANNELS", "16").replace("SLOPE", "0")), TRAIN, seed=3
    )
    net.blobs["data"].data[...] = np.random.default_rng(0).standard_normal((4, 3, 9, 9))
    net.forward()
    before = net.blobs["conv"].data.copy()
    net.forward(start="scale")
    factor, shift = (p.data[:, None, None] for p in net.params["scale"])
    np.testing.assert_allclose(
        net.blobs["conv"].data, np.maximum(before * factor + shift, 0), rtol=1e-5, atol=1e-6
    )
