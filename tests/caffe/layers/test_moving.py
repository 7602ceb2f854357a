"""Reshape, Flatten, Crop, Tile, Permute, ShuffleChannel: values that only change their place."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.passing import backward, draw, same


def layer(kind: str, options: str = "", bottoms: str = "x") -> str:
    below = "".join(f'bottom: "{name}" ' for name in bottoms)
    return f'layer {{ name: "l" type: "{kind}" {below} top: "y" {options} }}'


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (layer("Reshape", "reshape_param { shape { dim: 0 dim: -1 } }"), (2, 12)),
        (layer("Reshape", "reshape_param { shape { dim: 4 dim: 6 } }"), (4, 6)),
        (layer("Reshape", "reshape_param { axis: 1 num_axes: 1 shape { dim: 3 dim: 1 } }"), None),
        (layer("Flatten"), (2, 12)),
        (layer("Flatten", "flatten_param { axis: 0 end_axis: -2 }"), (6, 4)),
    ],
)
def test_same_values(text, shape):
    x = draw(2, 3, 4)
    net = run(text, {"x": x})
    same(net.blobs["y"].data, x.reshape(shape or (2, 3, 1, 4)), 0, 0)
    assert np.shares_memory(net.blobs["x"].data, net.blobs["y"].data)
    assert np.shares_memory(net.blobs["x"].diff, net.blobs["y"].diff)
    check_gradients(text, {"x": x})


@pytest.mark.parametrize(
    ("axis", "index"), [(1, [2, 0, 2]), (0, [1]), (-1, [3, 2, 1, 0]), (1, [-1, 0, -3])]
)
def test_gather(axis, index):
    x = draw(2, 3, 4)
    places = " ".join(f"index: {place}" for place in index)
    text = layer("Gather", f"gather_param {{ axis: {axis} {places} }}")
    net = run(text, {"x": x})
    same(net.blobs["y"].data, np.take(x, index, axis), 0, 0)
    check_gradients(text, {"x": x})


@pytest.mark.parametrize("index", [3, -4])
def test_gather_out_of_range(index):
    text = layer("Gather", f"gather_param {{ axis: 1 index: {index} }}")
    with pytest.raises(LayerError, match=f"index {index} is out of range for axis 1 of size 3"):
        build(text, {"x": draw(2, 3, 4)})


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 1, 0, 2), (1, 0, 2, 3), (0, 1, 2, 3)])
def test_permute(order):
    x = draw(2, 3, 4, 5)
    text = layer("Permute", "permute_param { " + "".join(f"order: {a} " for a in order) + "}")
    net = run(text, {"x": x})
    same(net.blobs["y"].data, x.transpose(order), 0, 0)
    gradients = backward(net)["y"]
    same(net.blobs["x"].diff, gradients.transpose(np.argsort(order)), 0, 0)


def test_permute_many_axes():
    """oneDNN describes at most 12 axes."""
    shape = (1, 2, 1, 3, 1, 1, 2, 1, 1, 1, 2, 1, 1, 3)
    order = tuple(np.random.default_rng(3).permutation(14).tolist())
    text = layer("Permute", "permute_param { " + "".join(f"order: {a} " for a in order) + "}")
    x = draw(*shape)
    net = run(text, {"x": x})
    same(net.blobs["y"].data, x.transpose(order), 0, 0)
    gradients = backward(net)["y"]
    same(net.blobs["x"].diff, gradients.transpose(np.argsort(order)), 0, 0)


def test_permute_gradient():
    check_gradients(layer("Permute", "permute_param { order: 2 }"), {"x": draw(2, 3, 4)})


@pytest.mark.parametrize("shape", [(2, 6, 3, 2), (2, 6), (1, 6, 4)])
@pytest.mark.parametrize("group", [1, 2, 3, 6])
def test_shuffle_channel(shape, group):
    x = draw(*shape)
    text = layer("ShuffleChannel", f"shuffle_channel_param {{ group: {group} }}")
    net = run(text, {"x": x})
    top = (*shape, 1, 1)[:4]
    parts = x.reshape(top[0], group, 6 // group, -1).swapaxes(1, 2)
    same(net.blobs["y"].data, parts.reshape(top), 0, 0)
    check_gradients(text, {"x": x})
