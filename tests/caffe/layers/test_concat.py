"""Concat and Slice, which undo each other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same

CONCAT = (
    'layer {{ name: "l" type: "Concat" bottom: "a" bottom: "b" top: "y" concat_param {{ {} }} }}'
)
SLICE = (
    'layer {{ name: "l" type: "Slice" bottom: "x" top: "p" top: "q" top: "r" '
    "slice_param {{ {} }} }}"
)


@pytest.mark.parametrize(
    ("option", "axis"), [("axis: 0", 0), ("axis: 1", 1), ("axis: -1", 2), ("concat_dim: 1", 1)]
)
def test_concat(option: str, axis: int) -> None:
    a, b = draw(2, 3, 4), draw(2, 3, 4, seed=5)
    net = build(CONCAT.format(option), {"a": a, "b": b})
    net.forward()
    same(net.blobs["y"].data, np.concatenate([a, b], axis), 0, 0)
    given = backward(net)
    for name, want in zip("ab", np.split(given["y"], 2, axis), strict=True):
        same(net.blobs[name].diff, want, 0, 0)
    check_gradients(CONCAT.format(option), {"a": a, "b": b})


def test_one_bottom_shares() -> None:
    layer = 'layer { name: "l" type: "Concat" bottom: "a" top: "y" }'
    net = build(layer, {"a": draw(2, 3)})
    assert np.shares_memory(net.blobs["a"].data, net.blobs["y"].data)
    check_gradients(layer, {"a": draw(2, 3)})


@pytest.mark.parametrize(
    ("option", "axis", "points"),
    [
        ("axis: 1", 1, [2, 4]),
        ("axis: 1 slice_point: 1 slice_point: 4", 1, [1, 4]),
        ("axis: 0 slice_point: 1 slice_point: 2", 0, [1, 2]),
        ("axis: -1", 2, [1, 2]),
        ("slice_dim: 1", 1, [2, 4]),
    ],
)
def test_slice(option: str, axis: int, points: list[int]) -> None:
    x = draw(4, 6, 3)
    net = build(SLICE.format(option), {"x": x})
    net.forward()
    for name, want in zip("pqr", np.split(x, points, axis), strict=True):
        same(net.blobs[name].data, want, 0, 0)
    given = backward(net)
    same(net.blobs["x"].diff, np.concatenate([given[name] for name in "pqr"], axis), 0, 0)
    check_gradients(SLICE.format(option), {"x": x})


def test_empty_part() -> None:
    net = build(CONCAT.format("axis: 1"), {"a": draw(2, 0, 3), "b": draw(2, 4, 3)})
    net.forward()
    same(net.blobs["y"].data, draw(2, 4, 3), 0, 0)
    backward(net)
    same(net.blobs["b"].diff, net.blobs["y"].diff, 0, 0)
