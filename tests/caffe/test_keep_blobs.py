"""Nets whose blobs share memory give what nets give that keep them all, or say that it is gone."""

import numpy as np
import pytest

from sparknet.caffe import TEST, Net
from sparknet.errors import ArrayError, LayerError, SpecError
from sparknet.proto import parse_net

SHAPE = (2, 16, 12, 12)
NET = """
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 2 dim: 16 dim: 12 dim: 12 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 32 kernel_size: 3 pad: 1
                            weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "left" type: "Convolution" bottom: "conv1" top: "left"
        convolution_param { num_output: 32 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "left" bottom: "conv1" top: "sum" }
layer { name: "tanh" type: "TanH" bottom: "sum" top: "tanh" }
layer { name: "right" type: "Pooling" bottom: "tanh" top: "right"
        pooling_param { kernel_size: 3 stride: 1 pad: 1 } }
layer { name: "both" type: "Concat" bottom: "right" bottom: "tanh" top: "both" }
layer { name: "flat" type: "Flatten" bottom: "both" top: "flat" }
layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""
NAMES = ("conv1", "left", "sum", "tanh", "right", "both", "flat", "ip", "prob")
IMAGE = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
GIVEN_BACK = r"the values of (blob )?'{}' were given back after their last reader"


def build_net(keep_blobs, text=NET):
    return Net.from_proto(parse_net(text), TEST, seed=1, keep_blobs=keep_blobs)


def values(keep_blobs, data=IMAGE):
    net = build_net(keep_blobs)
    net.blobs["data"].reshape(*data.shape)
    found = net.forward(data=data, blobs=NAMES)
    return {name: np.array(found[name]) for name in NAMES}


def test_what_is_gone_says_so_and_is_kept_from_then_on():
    want, net = values(True), build_net(False)
    net.forward(data=IMAGE)
    for name in ("conv1", "tanh", "flat"):
        with pytest.raises(ArrayError, match=GIVEN_BACK.format(name)):
            _ = net.blobs[name].data
    np.testing.assert_array_equal(net.blobs["data"].data, IMAGE)
    net.forward()
    np.testing.assert_allclose(net.blobs["prob"].data, want["prob"], rtol=1e-5)
    for name in ("conv1", "tanh", "flat"):
        np.testing.assert_allclose(net.blobs[name].data, want[name], rtol=1e-5, atol=1e-6)


def test_a_blob_that_was_looked_at_before_follows_every_pass():
    net, data = build_net(False), IMAGE
    view = net.blobs["left"].data
    assert not view.any()
    for _ in range(2):
        net.forward(data=data)
        np.testing.assert_allclose(view, values(True, data)["left"], rtol=1e-5, atol=1e-6)
        data = data * 2


def test_less_memory_is_taken():
    taken = []
    for keep in (True, False):
        net = build_net(keep)
        for _ in range(2):
            net._forward(0, len(net.layers) - 1)
        memory = net._runtime.engine.memory()
        taken.append(memory["rows"] + memory["layouts"] - net.flat_params.nbytes)
    assert taken[1] < 0.6 * taken[0]


def test_parts_of_a_pass():
    want, net = values(True), build_net(False)
    actual = net.forward(data=IMAGE, end="tanh")
    np.testing.assert_allclose(actual["tanh"], want["tanh"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net.forward(start="right")["prob"], want["prob"], rtol=1e-5)
    with pytest.raises(LayerError, match=GIVEN_BACK.format("right")):
        net.forward(start="both")
    np.testing.assert_allclose(net.forward()["prob"], want["prob"], rtol=1e-5)


def test_an_empty_batch():
    net = build_net(False)
    for images in (2, 0, 0, 1):
        net.blobs["data"].reshape(images, *SHAPE[1:])
        for _ in range(2):
            actual = net.forward(data=IMAGE[:images])
            assert actual["prob"].shape == (images, 5)
            want = values(True, IMAGE[:images])["prob"]
            np.testing.assert_allclose(actual["prob"], want, rtol=1e-5)


def test_callbacks_see_what_comes_next():
    net, seen = build_net(False), []
    net.after_forward(
        lambda layer: seen.append(net.blobs[net.top_names[net._layer_names[layer]][0]])
    )
    net.forward(data=IMAGE)
    assert len(seen) == len(net.layers)


def test_layers_in_python():
    text = NET.replace(
        'name: "tanh" type: "TanH"',
        'name: "tanh" type: "Python" '
        'python_param { module: "tests.caffe.user_layers" layer: "TimesTen" }',
    )
    actual = [build_net(keep, text).forward(data=IMAGE)["prob"] for keep in (True, False)]
    np.testing.assert_allclose(actual[1], actual[0], rtol=1e-5)


SCALE = "filler { type: 'uniform' min: 0.5 max: 2 }"


def behind_a_convolution(*layers: str) -> str:
    """A net with these between a convolution and layers that end it; each has a top of its own."""
    conv = """
      convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }"""
    text = NET[: NET.index('layer { name: "conv1"')]
    text += f'layer {{ name: "c0" type: "Convolution" bottom: "data" top: "t0" {conv} }}'
    text += f'layer {{ name: "c1" type: "Convolution" bottom: "t0" top: "t1" {conv} }}'
    for number, layer in enumerate(layers, 1):
        ends = f'name: "l{number}" bottom: "t{number}" top: "t{number + 1}"'
        text += f"layer {{ {ends} {layer} }}"
    top = f"t{len(layers) + 1}"
    return text + NET[NET.index('layer { name: "ip"') :].replace('"flat"', f'"{top}"')


def both(text, seed):
    """What a net that keeps its blobs gives, and one that does not."""
    found = []
    for keep in (True, False):
        net = build_net(keep, text)
        rng = np.random.default_rng(seed)
        for name, blobs in net.params.items():
            for blob in blobs:
                if net.layer_dict[name].type == "BatchNorm":
                    blob.data[...] = rng.uniform(0.5, 2, blob.shape)
        image = rng.standard_normal(SHAPE).astype(np.float32)
        found.append({name: np.array(one) for name, one in net.forward(data=image).items()})
    return found


@pytest.mark.parametrize(
    "layers",
    [
        ['type: "BatchNorm"'],
        [f'type: "Scale" scale_param {{ bias_term: true {SCALE} }}'],
        [f'type: "Bias" bias_param {{ {SCALE} }}'],
        ['type: "BatchNorm"', f'type: "Scale" scale_param {{ {SCALE} }}', 'type: "ReLU"'],
        ['type: "Eltwise" bottom: "t0"', 'type: "ReLU"'],
    ],
)
def test_what_convolutions_take_in_changes_last_bits_at_most(layers):
    """As docs/pycaffe.md says."""
    for seed in range(5):
        kept, lean = both(behind_a_convolution(*layers), seed)
        for name, want in kept.items():
            assert np.abs(lean[name] - want).max() < 1e-5 * np.abs(want).max()


@pytest.mark.parametrize(
    "layers",
    [
        ['type: "ReLU"'],
        ['type: "LRN"', 'type: "ReLU"'],
        ['type: "Pooling" pooling_param { kernel_size: 3 stride: 2 pool: AVE }', 'type: "TanH"'],
        ['type: "PReLU"', 'type: "BatchNorm"', f'type: "Scale" scale_param {{ {SCALE} }}'],
    ],
)
def test_other_nets_give_the_same_bits(layers):
    for seed in range(3):
        kept, lean = both(behind_a_convolution(*layers), seed)
        assert kept.keys() == lean.keys()
        for name, want in kept.items():
            np.testing.assert_array_equal(lean[name], want)


def test_there_is_no_way_back():
    net = build_net(False)
    net.forward(data=IMAGE)
    with pytest.raises(SpecError, match="keep_blobs=False has no backward pass"):
        net.backward()
