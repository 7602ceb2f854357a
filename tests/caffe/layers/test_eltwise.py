"""Eltwise, Math, Div and Where against numpy and finite differences."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.passing import backward, draw, same


def check(text, given, want):
    net = run(text, given)
    np.testing.assert_allclose(net.blobs[net.outputs[0]].data, want, rtol=1e-5)
    check_gradients(text, given, step=1e-2, tolerance=1e-2)


AXPY = 'layer { name: "l" type: "Axpy" bottom: "a" bottom: "x" bottom: "y" top: "z" }\n'


@pytest.mark.parametrize("scale", [(2, 3), (2, 3, 1, 1)])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 2, 2)])
def test_axpy(scale, shape):
    rng = np.random.default_rng(0)
    inputs = {
        name: rng.normal(size=s) for name, s in zip("axy", (scale, shape, shape), strict=True)
    }
    wide = inputs["a"].reshape(2, 3, *(1,) * (len(shape) - 2))
    check(AXPY, inputs, wide * inputs["x"] + inputs["y"])


def text(function: str) -> str:
    options = f"function: {function}" if function else ""
    return f'layer {{ name: "l" type: "Math" bottom: "x" top: "y" math_param {{ {options} }} }}'


WHOLE = {"FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.round, "TRUNC": np.trunc}


@pytest.mark.parametrize("function", WHOLE)
def test_whole_numbers(function):
    x = np.concatenate([3 * draw(1, 40), np.arange(-20, 20)[None] / np.float32(4)])
    x = np.append(x, [[np.inf, -np.inf, np.nan, 3e9]] * 2, 1).astype(np.float32)
    net = run(text(function), {"x": x})
    want = WHOLE[function](x)
    same(net.blobs["y"].data, want, 0, 0)
    backward(net)
    assert not net.blobs["x"].diff.any()


@pytest.mark.parametrize(("function", "of"), [("SIN", np.sin), ("COS", np.cos)])
def test_waves(function, of):
    x = 9 * draw(2, 3, 5)
    net = run(text(function), {"x": x})
    same(net.blobs["y"].data, of(x.astype(np.float64)).astype(np.float32), 1e-6, 1e-6)
    check_gradients(text(function), {"x": x})


def test_no_function():
    with pytest.raises(LayerError, match="function must be given: FLOOR, CEIL, ROUND"):
        build(text(""), {"x": draw(2)})


TEXT = 'layer { name: "l" type: "Div" bottom: "a" bottom: "b" top: "y" }'


def summed(share: np.ndarray, like: np.ndarray) -> np.ndarray:
    shape = (1,) * (share.ndim - like.ndim) + like.shape
    spread = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return share.sum(spread, keepdims=True).reshape(like.shape)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 4), (2, 3, 4)),
        ((2, 1, 4), (2, 3, 1)),
        ((3, 4), (2, 3, 4)),
        ((2, 3, 1, 5), (4, 1)),
        ((), (2, 3)),
        ((2, 0, 4), (1, 1, 4)),
    ],
)
def test_values_and_gradient(a, b):
    sizes = np.abs(draw(*b, seed=1)) + np.float32(0.5)
    inputs = {"a": draw(*a), "b": np.where(draw(*b, seed=2) > 0, sizes, -sizes)}
    net = run(TEXT, inputs)
    same(net.blobs["y"].data, inputs["a"] / inputs["b"], 0, 0)
    gradients = backward(net)["y"].astype(np.float64)
    one, other = (inputs[name].astype(np.float64) for name in "ab")
    same(net.blobs["a"].diff, summed(gradients / other, one))
    same(net.blobs["b"].diff, summed(-gradients * one / other**2, other))
    check_gradients(TEXT, inputs)


def test_a_value_over_itself_is_one():
    a = draw(1000)
    net = run('layer { name: "l" type: "Div" bottom: "a" bottom: "a" top: "y" }', {"a": a})
    np.testing.assert_array_equal(net.blobs["y"].data, 1)


def test_shapes_that_do_not_fit():
    with pytest.raises(LayerError, match="the values 2 x 3 and 4 x 3 do not fit each other"):
        build(TEXT, {"a": draw(2, 3), "b": draw(4, 3)})


WHERE_TEXT = 'layer { name: "l" type: "Where" bottom: "c" bottom: "a" bottom: "b" top: "y" }'


def condition(*shape: int) -> np.ndarray:
    return (draw(*shape, seed=2) > 0).astype(np.float32)


@pytest.mark.parametrize(
    ("c", "a", "b"),
    [
        ((2, 3, 4), (2, 3, 4), (2, 3, 4)),
        ((2, 1, 4), (2, 3, 1), (1, 3, 4)),
        ((3, 4), (2, 3, 4), (4,)),
        ((2, 3, 1, 5), (3, 4, 1), (1,)),
        ((), (2, 3), ()),
        ((2, 0, 4), (2, 0, 4), (1, 1, 4)),
    ],
)
def test_where(c, a, b):
    inputs = {"c": condition(*c), "a": draw(*a), "b": draw(*b, seed=1)}
    net = run(WHERE_TEXT, inputs)
    same(net.blobs["y"].data, np.where(inputs["c"] != 0, inputs["a"], inputs["b"]), 0, 0)
    gradients = backward(net)["y"]
    for name, taken in (("a", inputs["c"] != 0), ("b", inputs["c"] == 0)):
        share = np.where(taken, gradients, 0)
        shape = (1,) * (share.ndim - inputs[name].ndim) + inputs[name].shape
        spread = tuple(axis for axis, size in enumerate(shape) if size == 1)
        want = share.sum(spread, keepdims=True).reshape(inputs[name].shape)
        same(net.blobs[name].diff, want)
    check_gradients(WHERE_TEXT, inputs, of=["a", "b"])


def test_what_is_not_taken_does_not_matter():
    c = np.array([1, 0, 1, 0], np.float32)
    a = np.array([1, np.nan, -np.inf, np.inf], np.float32)
    net = run(WHERE_TEXT, {"c": c, "a": a, "b": a[::-1].copy()})
    np.testing.assert_array_equal(net.blobs["y"].data, [1, -np.inf, -np.inf, 1])
    gradients = backward(net)["y"]
    np.testing.assert_array_equal(net.blobs["a"].diff, gradients * c)
    np.testing.assert_array_equal(net.blobs["b"].diff, gradients * (1 - c))


def test_where_shapes_that_do_not_fit():
    says = "the condition 2 x 3 and the values 4 x 3 and scalar do not fit each other"
    with pytest.raises(LayerError, match=says):
        build(WHERE_TEXT, {"c": condition(2, 3), "a": draw(4, 3), "b": draw()})
