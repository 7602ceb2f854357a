"""Random arrays for the tests of NDArray: a numpy array and its NDArray twin over one memory."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparknet.native import NDArray

Numbers = np.ndarray[Any, np.dtype[Any]]

DTYPES = (np.float32, np.float64, np.int32, np.uint8, np.int8)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@st.composite
def layouts(draw, shape, dtype=np.float32):
    """Ones of this shape, laid out in memory in any way: axes permuted, stepped, reversed."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in shape]
    sides = [shape[axis] * abs(steps[axis]) for axis in order]
    whole = np.ones(sides, dtype).transpose(np.argsort(order))
    key = (..., *(slice(None, None, step) for step in steps))
    part: Numbers = whole[key]
    assert part.shape == shape
    return part


def small_numbers(shape: tuple[int, ...], seed: int) -> Numbers:
    """float32 values that are multiples of 1/8, so that short sums are exact."""
    return (np.random.default_rng(seed).integers(-64, 64, shape) / 8).astype(np.float32)


@st.composite
def float_arrays(draw: st.DrawFn, shape: tuple[int, ...] | None = None) -> Numbers:
    """A float32 array of any layout with exact small values."""
    expected = draw(shapes) if shape is None else shape
    array = draw(layouts(expected))
    array[...] = small_numbers(expected, draw(st.integers(0, 1000)))
    return array


@st.composite
def indices(draw, shape):
    """An index expression that is valid for the shape."""
    entries = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        whole = st.slices(size)
        entries.append(draw(st.one_of(st.integers(-size, size - 1), whole) if size else whole))
    if draw(st.booleans()):
        entries.append(...)
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), None)
    return tuple(entries)


def twin(array: Numbers) -> NDArray:
    """An NDArray over the same memory; makes sure that it is the same."""
    nd = NDArray.view(array)
    assert nd.address == array.ctypes.data
    assert nd.shape == array.shape
    assert nd.size == 0 or nd.ndim == 0 or nd.strides == array.strides
    return nd
