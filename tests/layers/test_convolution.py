"""Convolution and InnerProduct: their windows, and what a plan says beyond shapes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.layers.convolution import Window, truncated

SMALL = st.integers(1, 5)


@given(SMALL, SMALL, st.integers(0, 3), SMALL, st.integers(1, 30))
def test_shrink_counts_the_positions(kernel, stride, pad, dilation, size):
    window = Window((kernel,), (stride,), (pad,), (dilation,))
    last = size + 2 * pad - window.extent()[0]
    if last >= 0:
        assert window.shrink([size]) == (len(range(0, last + 1, stride)),)


@given(SMALL, SMALL, SMALL, st.integers(1, 30))
def test_grow_undoes_shrink(kernel, stride, dilation, size):
    window = Window((kernel,), (stride,), (0,), (dilation,))
    assert window.shrink(window.grow([size])) == (size,)


@pytest.mark.parametrize(("a", "b", "want"), [(7, 2, 3), (-1, 2, 0), (-4, 2, -2), (-5, 2, -2)])
def test_truncated(a, b, want):
    assert truncated(a, b) == want
