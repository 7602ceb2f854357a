"""Views against numpy's, by value and by address."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.errors import ArrayError, IndexOutOfRange
from sparknet.native import NDArray
from tests.native.arrays import float_arrays, indices, twin


def agrees(got, want):
    """Same values; and, where numpy gives a view, the same memory."""
    if isinstance(got, NDArray):
        assert got.shape == want.shape
        if want.size:
            assert got.address == want.ctypes.data
        np.testing.assert_array_equal(got.numpy(), want)
    else:
        assert np.ndim(want) == 0
        assert got == want


@given(st.data())
def test_indexing_is_numpys(data):
    array = data.draw(float_arrays())
    key = data.draw(indices(array.shape))
    agrees(twin(array)[key], array[key])


@given(st.data())
def test_assignment_is_numpys(data):
    array = data.draw(float_arrays())
    key = data.draw(indices(array.shape))
    want = array.copy()
    value = data.draw(st.one_of(st.just(2.5), float_arrays(np.shape(array[key]))))
    want[key] = value
    twin(array)[key] = value
    np.testing.assert_array_equal(array, want)


@given(st.data())
def test_transposing_and_reshaping_are_numpys(data):
    array = data.draw(float_arrays())
    axes = data.draw(st.permutations(range(array.ndim)))
    if axes:
        agrees(twin(array).transpose(axes), array.transpose(axes))
    agrees(twin(array).T, array.T)
    agrees(twin(array).squeeze(), array.squeeze())
    sides = [s for s in array.shape if s != 1]
    merged = [int(np.prod(sides[:1])), int(np.prod(sides[1:]))]
    for shape in (merged, [array.size], [1, *array.shape, 1], [-1] if array.size else [0]):
        got, want = twin(array).reshape(shape), array.reshape(shape)
        np.testing.assert_array_equal(got.numpy(), want)
        if array.size:
            assert np.shares_memory(got.numpy(), array) == np.shares_memory(want, array)


def test_sparknets_own_names():
    array = NDArray(range(24), (2, 3, 4))
    part = array.subarray(offsets=(0, 1, 1), shape=(2, 2, 2))
    assert part.shape == (2, 2, 2)
    assert part.get(1, 1, 1) == part.get([1, 1, 1]) == 22
    assert part.address == array.address + 4 * 5
    assert array.slice(1, 2).to_flat().tolist() == [8, 9, 10, 11, 20, 21, 22, 23]
    array.set(1, 2, 2, -1)
    assert part.get(1, 1, 1) == -1
    part.set((0, 0, 0), 7)
    assert array[0, 1, 1] == 7
    assert [row.shape for row in array] == [(3, 4), (3, 4)]
    assert len(array) == 2


def test_subarray_took_start_and_stop():
    array = NDArray(range(12), (3, 4))
    with pytest.warns(DeprecationWarning, match=r"is called subarray\(offsets, shape\) now"):
        part = array.subarray(start=[1, 1], stop=[2, 3])
    assert part.numpy().tolist() == [[5, 6]]
    with pytest.warns(FutureWarning, match=r"until 0.2 it ended before \[2, 2\]: write a\[start"):
        part = array.subarray([1, 1], [2, 2])
    assert part.numpy().tolist() == [[5, 6], [9, 10]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert array.subarray([0, 0], [2, 2]).shape == (2, 2)
        assert array.subarray(offsets=[1, 1], shape=[2, 2]).shape == (2, 2)
        assert array.subarray([1, 2], [2, 2]).shape == (2, 2)


def test_a_view_keeps_its_memory():
    view = NDArray(range(6), (2, 3))[1].numpy()
    assert view.tolist() == [3, 4, 5]


@pytest.mark.parametrize("key", [3, -4, (0, 4), (0, 0, 0), (slice(None), -5), 1 << 70])
def test_an_index_out_of_range_is_refused(key):
    array = NDArray.zeros((3, 4))
    with pytest.raises(IndexOutOfRange):
        array[key]
    with pytest.raises(IndexOutOfRange):
        array[key] = 1
    with pytest.raises(IndexError):
        array[key]


@pytest.mark.parametrize("key", ["a", 1.5, [0, 1], (..., ...), slice(0, 2, 0)])
def test_what_is_no_index_is_refused(key):
    with pytest.raises(ArrayError):
        NDArray.zeros((3, 4))[key]


def test_ranges_and_axes_are_checked():
    array = NDArray.zeros((3, 4))
    for offsets, shape in [
        ((0, 0), (4, 4)),
        ((-1, 0), (2, 1)),
        ((2, 2), (-1, 1)),
        ((1, 2), (3, 1)),
        ((0, 0), (1 << 70, 1)),
    ]:
        with pytest.raises(IndexOutOfRange):
            array.subarray(offsets, shape)
    with pytest.raises(ArrayError, match="2 axes"):
        array.subarray((0,), (1,))
    with pytest.raises(IndexOutOfRange):
        array.slice(2, 0)
    with pytest.raises(IndexOutOfRange):
        array.get(0)
    with pytest.raises(ArrayError, match="do not fit"):
        array.reshape(5, -1)
    with pytest.raises(ArrayError, match="twice"):
        array.transpose(0, 0)
    with pytest.raises(ArrayError, match="not 1"):
        array.squeeze(0)
