"""Where against numpy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same

TEXT = 'layer { name: "l" type: "Where" bottom: "c" bottom: "a" bottom: "b" top: "y" }'


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
def test_values_and_gradient(c: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> None:
    inputs = {"c": condition(*c), "a": draw(*a), "b": draw(*b, seed=1)}
    net = build(TEXT, inputs)
    net.forward()
    same(net.blobs["y"].data, np.where(inputs["c"] != 0, inputs["a"], inputs["b"]), 0, 0)
    given = backward(net)["y"]
    for name, taken in (("a", inputs["c"] != 0), ("b", inputs["c"] == 0)):
        share = np.where(taken, given, 0)
        shape = (1,) * (share.ndim - inputs[name].ndim) + inputs[name].shape
        spread = tuple(axis for axis, size in enumerate(shape) if size == 1)
        want = share.sum(spread, keepdims=True).reshape(inputs[name].shape)
        same(net.blobs[name].diff, want)
    check_gradients(TEXT, inputs, of=["a", "b"])


def test_what_is_not_taken_does_not_matter() -> None:
    c = np.array([1, 0, 1, 0], np.float32)
    a = np.array([1, np.nan, -np.inf, np.inf], np.float32)
    net = build(TEXT, {"c": c, "a": a, "b": a[::-1].copy()})
    net.forward()
    np.testing.assert_array_equal(net.blobs["y"].data, [1, -np.inf, -np.inf, 1])
    given = backward(net)["y"]
    np.testing.assert_array_equal(net.blobs["a"].diff, given * c)
    np.testing.assert_array_equal(net.blobs["b"].diff, given * (1 - c))


def test_shapes_that_do_not_fit() -> None:
    says = "the condition 2 x 3 and the values 4 x 3 and scalar do not fit each other"
    with pytest.raises(LayerError, match=says):
        build(TEXT, {"c": condition(2, 3), "a": draw(4, 3), "b": draw()})
