"""Div against numpy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same

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
def test_values_and_gradient(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    sizes = np.abs(draw(*b, seed=1)) + np.float32(0.5)
    inputs = {"a": draw(*a), "b": np.where(draw(*b, seed=2) > 0, sizes, -sizes)}
    net = build(TEXT, inputs)
    net.forward()
    same(net.blobs["y"].data, inputs["a"] / inputs["b"], 0, 0)
    given = backward(net)["y"].astype(np.float64)
    one, other = (inputs[name].astype(np.float64) for name in "ab")
    same(net.blobs["a"].diff, summed(given / other, one))
    same(net.blobs["b"].diff, summed(-given * one / other**2, other))
    check_gradients(TEXT, inputs)


def test_a_value_over_itself_is_one() -> None:
    a = draw(1000)
    net = build('layer { name: "l" type: "Div" bottom: "a" bottom: "a" top: "y" }', {"a": a})
    net.forward()
    np.testing.assert_array_equal(net.blobs["y"].data, 1)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(LayerError, match="the values 2 x 3 and 4 x 3 do not fit each other"):
        build(TEXT, {"a": draw(2, 3), "b": draw(4, 3)})
