"""SizedLike against numpy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same


def text(*sizes: str, reshape: bool = False) -> str:
    listed = " ".join(f"size {{ {one} }}" for one in sizes)
    options = f"sized_like_param {{ {listed} reshape: {str(reshape).lower()} }}"
    return f'layer {{ name: "l" type: "SizedLike" bottom: "x" bottom: "r" top: "y" {options} }}'


FIRST, SECOND = "bottom: 1 axis: 0", "bottom: 1 axis: 1"


@pytest.mark.parametrize(
    ("x", "sizes", "want"),
    [
        ((1, 3), (FIRST, "bottom: 0 axis: 1"), (2, 3)),
        ((2, 1, 1, 4), (FIRST, "dim: 3", SECOND, "bottom: 1 axis: -1"), (2, 3, 4, 4)),
        ((7, 6), (FIRST, SECOND), (2, 4)),
        ((1, 7, 9), (FIRST, SECOND, SECOND), (2, 4, 4)),
        ((9, 1), (SECOND, SECOND), (4, 4)),
        ((), (FIRST,), (2,)),
    ],
)
def test_spread_and_cut(x: tuple[int, ...], sizes: tuple[str, ...], want: tuple[int, ...]) -> None:
    inputs = {"x": draw(*x), "r": draw(2, 4, seed=1)}
    net = build(text(*sizes), inputs)
    net.forward()
    lined = (1,) * (len(want) - len(x)) + x
    window = tuple(slice(min(have, size)) for have, size in zip(lined, want, strict=True))
    taken = inputs["x"].reshape(lined)[window]
    same(net.blobs["y"].data, np.broadcast_to(taken, want), 0, 0)
    given, diff = backward(net)["y"], np.zeros(lined, np.float32)
    spread = tuple(axis for axis, size in enumerate(lined) if size == 1)
    diff[window] = given.sum(spread, keepdims=True)
    same(net.blobs["x"].diff, diff.reshape(x))
    check_gradients(text(*sizes), inputs, of=["x"])


@pytest.mark.parametrize(
    ("sizes", "want"),
    [((FIRST, SECOND, "dim: -1"), (2, 4, 3)), ((SECOND, "dim: 2", "dim: 3"), (4, 2, 3))],
)
def test_reshape(sizes: tuple[str, ...], want: tuple[int, ...]) -> None:
    inputs = {"x": draw(8, 3), "r": draw(2, 4, seed=1)}
    net = build(text(*sizes, reshape=True), inputs)
    net.forward()
    same(net.blobs["y"].data, inputs["x"].reshape(want), 0, 0)
    check_gradients(text(*sizes, reshape=True), inputs, of=["x"])


@pytest.mark.parametrize(
    ("sizes", "reshape", "says"),
    [
        ((FIRST, SECOND), False, "an axis of 4 is wanted, and the model holds values for 3"),
        ((FIRST,), False, "8 x 3 has more axes than 2"),
        ((FIRST, "dim: -1"), False, "one size may be -1, and only with reshape"),
        ((FIRST, "dim: -2"), True, "a size must not be negative; it is -2"),
        (("bottom: 2", FIRST), True, "a size is that of bottom 2; there are 2"),
        ((SECOND, "dim: 5"), True, "8 x 3 does not become 4 x 5"),
        (("bottom: 1 axis: 2",), True, "axis 2 is out of range for the shape 2 x 4"),
    ],
)
def test_refusals(sizes: tuple[str, ...], reshape: bool, says: str) -> None:
    with pytest.raises(LayerError, match=says):
        build(text(*sizes, reshape=reshape), {"x": draw(8, 3), "r": draw(2, 4)})
