"""Arithmetic is done in blocks: none reads or writes beyond its array, nor what another wrote."""

import numpy as np
import pytest

from sparknet.native import NDArray
from tests.native.test_arithmetic import PAIRS

SIZES = [1, 5, 255, 256, 257, 1024, 3000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("ours", "numpys"), PAIRS)
def test_what_lies_around_an_array_stays(ours, numpys, size):
    values = np.random.default_rng(size).integers(-50, 50, (2, size + 4000)).astype(np.float32)
    whole, other = NDArray(values[0].copy()), NDArray(values[1].copy())
    ours(whole[1000 : 1000 + size], other[1000 : 1000 + size])
    part = slice(1000, 1000 + size)
    expected = values[0].copy()
    expected[part] = numpys(values[0][part], values[1][part])
    np.testing.assert_array_equal(whole.numpy(), expected)
    np.testing.assert_array_equal(other.numpy(), values[1])


@pytest.mark.parametrize("size", SIZES)
def test_a_mean_is_of_its_arrays_alone(size):
    values = np.random.default_rng(size).integers(-50, 50, (9, size + 2000)).astype(np.float32)
    parts = [NDArray(row.copy())[:size] for row in values]
    whole = NDArray(np.full(size + 4000, 7, np.float32))
    NDArray.weighted_mean(parts, list(range(1, 10)), out=whole[1000 : 1000 + size])
    weights, found = np.arange(1, 10) / 45, whole.numpy()
    expected = weights @ values[:, :size].astype(float)
    np.testing.assert_allclose(found[1000 : 1000 + size], expected, rtol=1e-6, atol=1e-5)
    assert (found[:1000] == 7).all()
    assert (found[1000 + size :] == 7).all()


@pytest.mark.parametrize("size", SIZES)
def test_an_array_and_its_reverse(size):
    """They share memory: all is read as it was before."""
    values = np.arange(size, dtype=np.float32)
    forward = NDArray(values.copy())
    forward.add(forward[::-1])
    np.testing.assert_array_equal(forward.numpy(), np.full(size, size - 1))
    backward = NDArray(values.copy())
    backward[::-1].subtract(backward)
    np.testing.assert_array_equal(backward.numpy(), values - values[::-1])
    shifted = NDArray(np.arange(size + 1, dtype=np.float32))
    shifted[1:].add(shifted[:-1])
    np.testing.assert_array_equal(shifted.numpy()[1:], 2 * values + 1)


def test_numbers_of_both_precisions_are_compared_in_the_wider():
    single = NDArray(np.ones(3, np.float32))
    double = NDArray(np.array([1, 1 + 1e-12, 1]), dtype=np.float64)
    assert not single.equals(double)
    assert not double.equals(single)
    assert single.equals(double, 2e-12)
    assert single.allclose(double)
