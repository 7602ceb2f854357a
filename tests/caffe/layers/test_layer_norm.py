"""LayerNorm against numpy and finite differences."""

from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe.gradient import check_gradients, input_layer, run
from tests.caffe.layers.passing import draw, same

Array = Any


@pytest.mark.parametrize(("options", "axis"), [("", 2), ("axis: 1", 1), ("axis: 2 eps: 0.5", 2)])
def test_values_and_gradient(options, axis):
    text = (
        f'layer {{ name: "l" type: "LayerNorm" bottom: "x" top: "y" '
        f"layer_norm_param {{ {options} }} }}"
    )
    x = 3 * draw(2, 4, 5) + 7
    net = run(text, {"x": x})
    axes = tuple(range(axis, 3))
    eps = 0.5 if "eps" in options else 1e-5
    wide = x.astype(np.float64)
    want = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + eps)
    same(net.blobs["y"].data, want, 1e-5, 1e-5)
    check_gradients(text, {"x": x})


def normalised(x, axis):
    wide, axes = x.astype(np.float64), tuple(range(axis, x.ndim))
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)


def scaled(bias: bool, axis: int = -1, axes: int = 1, top: str = "y") -> str:
    filler = 'filler { type: "gaussian" std: 1 } bias_filler { type: "gaussian" std: 1 }'
    options = f"axis: {axis} num_axes: {axes} bias_term: {str(bias).lower()} {filler}"
    return f"""layer {{ name: "l" type: "LayerNorm" bottom: "x" top: "n"
        layer_norm_param {{ axis: {axis} }} }}
    layer {{ name: "s" type: "Scale" bottom: "n" top: "{top}" scale_param {{ {options} }} }}"""


def net_of(text, shape, **more):
    return caffe.Net.from_proto(
        parse_net(input_layer("x", shape) + text), caffe.TEST, seed=3, **more
    )


def expected(net, x, axis):
    factors = [np.array(blob.data, np.float64) for blob in net.params["s"]]
    return normalised(x, axis) * factors[0] + (factors[1] if len(factors) > 1 else 0)


SHAPES = [(7, 5, 96), (2, 197, 768), (3, 1000), (2, 9, 17), (5, 15), (1, 3, 4, 384), (4, 1)]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_and_shifts_behind(shape, bias, keep):
    """Far from zero, too, where sums in float32 would lose what is between the values."""
    for offset in (0, 1000):
        for top in ("y", "n"):
            net = net_of(scaled(bias, top=top), shape, keep_blobs=keep)
            x = (2 * draw(*shape) + offset).astype(np.float32)
            actual = net.forward(x=x)[top]
            want = expected(net, x, -1 % len(shape))
            same(actual, want, 1e-5 if not offset else 1e-3, 1e-5 if not offset else 1e-3)


@pytest.mark.parametrize("keep", [True, False])
def test_factors_of_other_axes_than_the_normalised(keep):
    for axis, axes in ((1, 1), (1, 2), (2, 1)):
        text = scaled(True).replace("axis: -1 num_axes: 1", f"axis: {axis} num_axes: {axes}")
        net = net_of(text, (3, 8, 6), keep_blobs=keep)
        x = draw(3, 8, 6)
        factors = [np.array(blob.data, np.float64) for blob in net.params["s"]]
        over = [one.reshape(one.shape + (1,) * (3 - axis - axes)) for one in factors]
        same(net.forward(x=x)["y"], normalised(x, 2) * over[0] + over[1], 1e-5, 1e-5)


def test_over_two_axes():
    net = net_of(scaled(True, axis=1, axes=2), (3, 8, 6), keep_blobs=False)
    x = draw(3, 8, 6)
    same(net.forward(x=x)["y"], expected(net, x, 1), 1e-5, 1e-5)


def test_what_lies_between_can_be_asked_for():
    net = net_of(scaled(True), (4, 33), keep_blobs=False)
    x = draw(4, 33)
    for _ in range(2):
        same(net.forward(x=x)["y"], expected(net, x, 1), 1e-5, 1e-5)
        actual = net.forward(x=x, blobs=["n"])
        same(actual["n"], normalised(x, 1), 1e-5, 1e-5)
        same(actual["y"], expected(net, x, 1), 1e-5, 1e-5)
    reads = """layer { name: "r" type: "ReLU" bottom: "n" top: "r" }"""
    net = net_of(scaled(True) + reads, (4, 33), keep_blobs=False)
    actual = net.forward(x=x)
    same(actual["r"], np.maximum(normalised(x, 1), 0), 1e-5, 1e-5)
    same(actual["y"], expected(net, x, 1), 1e-5, 1e-5)


@pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")
@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("shape", [(7, 5, 96), (3, 100, 768), (2, 9, 17)], ids=str)
def test_in_front_of_a_product_of_bfloat16(shape, behind):
    text = scaled(True) if behind else scaled(True).split('layer { name: "s"')[0]
    last = "y" if behind else "n"
    text += f"""layer {{ name: "p" type: "InnerProduct" bottom: "{last}" top: "p"
        inner_product_param {{ num_output: 24 axis: -1 weight_filler {{ type: "xavier" }} }} }}"""
    x = draw(*shape)
    found = []
    for keep in (True, False):
        net = net_of(text, shape, keep_blobs=keep, precision="bf16")
        found.append(np.array(net.forward(x=x)["p"]))
    np.testing.assert_array_equal(found[0], found[1])
