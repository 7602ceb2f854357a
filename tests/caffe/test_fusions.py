"""Layers that are computed together give what they give one by one."""

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


def run(phase, channels, slope, forward, backward):
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
def test_normalised_layers_agree_with_single_ones(phase, channels, slope, backward):
    single = run(phase, channels, slope, "single", "single")
    for one, other in zip(single, run(phase, channels, slope, "whole", backward), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4 * (np.abs(one).max() + 1e-9))


def test_a_pass_that_starts_within_goes_on_from_what_the_blob_holds():
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


CONV = 'convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }'
GATES_NET = f"""
force_backward: true
layer {{ name: "x" type: "Input" top: "x"
         input_param {{ shape {{ dim: 3 dim: 8 dim: 9 dim: 9 }} }} }}
layer {{ name: "conv" type: "Convolution" bottom: "x" top: "conv" {CONV} }}
layer {{ name: "relu" type: "ReLU" bottom: "conv" top: "conv"
         relu_param {{ negative_slope: SLOPE }} }}
layer {{ name: "pool" type: "Pooling" bottom: "conv" top: "pool"
         pooling_param {{ pool: MAX kernel_size: 3 stride: 2 POOLING }} }}
BEHIND
layer {{ name: "mid" type: "Convolution" bottom: "pool" top: "mid" {CONV} }}
layer {{ name: "left" type: "Convolution" bottom: "mid" top: "left" {CONV} }}
layer {{ name: "right" type: "Convolution" bottom: "mid" top: "right" {CONV} }}
layer {{ name: "third" type: "Convolution" bottom: "mid" top: "third" {CONV} }}
layer {{ name: "sum" type: "Eltwise" bottom: "left" bottom: "right" MORE top: "sum"
         eltwise_param {{ operation: SUM COEFFICIENTS }} }}
layer {{ name: "sum_relu" type: "ReLU" bottom: "sum" top: "sum"
         relu_param {{ negative_slope: SLOPE }} }}
layer {{ name: "one" type: "Convolution" bottom: "sum" top: "one" {CONV} }}
layer {{ name: "two" type: "Convolution" bottom: "sum" top: "two" {CONV} }}
layer {{ name: "three" type: "InnerProduct" bottom: "sum" top: "three"
         inner_product_param {{ num_output: 4 weight_filler {{ type: "xavier" }} }} }}
"""
VARIANTS = {
    "plain": {},
    "slope": {"SLOPE": "0.25"},
    "three terms": {"MORE": 'bottom: "third"', "COEFFICIENTS": "coeff: 1 coeff: -2 coeff: 0.5"},
    "padded windows": {"POOLING": "pad: 1"},
    "dropped behind": {
        "BEHIND": 'layer { name: "drop" type: "Dropout" bottom: "pool" top: "pool" }'
    },
    "with a mask": {'top: "pool"\n': 'top: "pool" top: "mask"\n'},
}
DEFAULTS = {"SLOPE": "0", "MORE": "", "COEFFICIENTS": "", "POOLING": "", "BEHIND": ""}


def make(variant: str) -> Net:
    text = GATES_NET
    for old, new in (DEFAULTS | VARIANTS[variant]).items():
        text = text.replace(old, new)
    return Net.from_proto(parse_net(text), TRAIN, seed=3)


def run_gates(net, parts):
    """Everything that two passes leave, in one go, or cut before each layer."""
    rng = np.random.default_rng(0)
    last = len(net.layers) - 1
    cuts = [(0, last)] if parts == "whole" else [(i, i) for i in range(last + 1)]
    for _ in range(2):
        net.blobs["x"].data[...] = rng.standard_normal(net.blobs["x"].shape)
        for first, stop in cuts:
            net._forward(first, stop)
        for name in net.outputs:
            net.blobs[name].diff[...] = rng.standard_normal(net.blobs[name].shape)
        for first, stop in reversed(cuts):
            net._backward(stop, first)
    blobs = [part for blob in net.blobs.values() for part in (blob.data, blob.diff)]
    params = [p.diff for own in net.params.values() for p in own]
    return [np.array(part) for part in blobs + params]


@pytest.mark.parametrize("variant", VARIANTS)
def test_bits_are_those_of_single_layers(variant):
    for got, want in zip(
        run_gates(make(variant), "whole"), run_gates(make(variant), "single"), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_the_gradient_before_a_relu_ends_where_it_clips():
    net = make("plain")
    run_gates(net, "whole")
    conv, total = net.blobs["conv"], net.blobs["sum"]
    assert not conv.diff[conv.data <= 0].any()
    assert conv.diff.any()
    assert not total.diff[total.data <= 0].any()
    assert total.diff[total.data > 0].all()


def test_a_pool_that_somebody_wrote_says_nothing_of_its_input():
    nets = [make("plain"), make("plain")]
    last = len(nets[0].layers) - 1
    for net, whole in zip(nets, (True, False), strict=True):
        net.blobs["x"].data[...] = np.random.default_rng(0).standard_normal(net.blobs["x"].shape)
        net._forward(0, last)
        net.blobs["pool"].data[...] = 0
        for name in net.outputs:
            net.blobs[name].diff[...] = 1
        for first, stop in [(last, 0)] if whole else [(i, i) for i in range(last, -1, -1)]:
            net._backward(first, stop)
    assert nets[0].blobs["conv"].diff.any()
    np.testing.assert_array_equal(nets[0].blobs["conv"].diff, nets[1].blobs["conv"].diff)


@pytest.mark.parametrize("name", ["relu", "sum_relu"])
def test_the_pass_of_the_relu_itself_is_saved(name):
    net = make("plain")
    net._runtime.time(True)
    run_gates(net, "whole")
    _, backward = net._runtime.times()
    assert backward[net._layer_number(name)] == 0
    assert backward[net._layer_number("conv")] > 0


def test_a_layer_without_tops_behind_a_relu_in_place():
    end = GATES_NET.index('layer { name: "pool"')
    text = (
        GATES_NET[:end].replace("SLOPE", "0")
        + 'layer { name: "end" type: "Silence" bottom: "conv" }'
    )
    net = Net.from_proto(parse_net(text), TRAIN, seed=3)
    net.blobs["x"].data[...] = 1
    net.forward()
    assert net.blobs["conv"].data.any()
    net.blobs["conv"].diff[...] = 5
    net.backward()
    assert not net.blobs["conv"].diff.any()
