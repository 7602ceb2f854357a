"""Softmax, Scale, Bias and Reduction against numpy and finite differences."""

import numpy as np
import pytest

from tests.caffe.gradient import run
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    values,
)
from tests.caffe.layers.passing import draw, same


def softmax(x, axis):
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def text(axis: int, kind: str = "Softmax", **names: str) -> str:
    return layer_text(kind, f"softmax_param {{ axis: {axis} }}", **names)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 21, 9), (2, 3, 4, 2, 2, 3)])
def test_every_axis(shape):
    x = values(*shape)
    for axis in range(len(shape)):
        y, dy, net = passes(text(axis), {"x": x})
        want = softmax(x, axis)
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-7)
        slope = want * (dy - (dy * want).sum(axis, keepdims=True))
        np.testing.assert_allclose(net.blobs["x"].diff, slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("apart", [1, 80, 200, 30000])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 40, 9), (2, 3, 4, 2)])
def test_logarithms_of_what_lies_far_apart(shape, apart):
    x = np.sin(values(*shape)) * np.float32(apart)
    for axis in range(len(shape)):
        y, dy, net = passes(text(axis, "LogSoftmax"), {"x": x})
        below = x.astype(np.float64) - x.max(axis, keepdims=True)
        want = below - np.log(np.exp(below).sum(axis, keepdims=True))
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
        slope = dy - np.exp(want) * dy.sum(axis, keepdims=True, dtype=np.float64)
        np.testing.assert_allclose(net.blobs["x"].diff, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [1, 2])
def test_a_row_with_nan_is_nan(axis, kind):
    x = np.sin(values(2, 20, 4, 3))
    x[1, 7, 2, 1] = np.nan
    y, _, _ = passes(text(axis, kind), {"x": x})
    want = softmax(x, axis)
    np.testing.assert_allclose(y, want if kind == "Softmax" else np.log(want), rtol=1e-4)
    assert np.isnan(y).sum() == x.shape[axis]


LAYER = (
    'layer {{ name: "l" type: "Reduction" bottom: "x" top: "y" '
    "reduction_param {{ operation: {} axis: {} coeff: {} }} }}"
)


@pytest.mark.parametrize("shape", [(40, 500), (3, 20000)])
def test_long_sums(shape):
    x = draw(*shape)
    net = run(LAYER.format("SUM", 1, 1), {"x": x})
    same(net.blobs["y"].data, x.astype(np.float64).sum(1), 1e-6, 1e-5)


def test_nothing_to_sum():
    net = run(LAYER.format("MEAN", 1, 1), {"x": draw(2, 0)})
    same(net.blobs["y"].data, np.zeros(2))
    net.backward()
