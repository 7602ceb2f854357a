"""Convolution and InnerProduct: their windows, and what a plan says beyond shapes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.layers.convolution import Window, truncated
from tests.layers.nets import plan, shapes_of_params


def conv(options: str) -> str:
    return f"convolution_param {{ {options} }}"


def test_sizes_weights_and_values():
    options = "num_output: 4 kernel_size: 3 stride: 2 pad: 1 group: 2 dilation: 2"
    found = plan("Convolution", conv(options), (2, 6, 9, 11))
    # (9 + 2 - 5) / 2 + 1 = 4, (11 + 2 - 5) / 2 + 1 = 5
    assert found.tops == ((2, 4, 4, 5),)
    assert shapes_of_params(found) == [(4, 3, 3, 3), (4,)]
    assert found.values == {
        "axis": 1,
        "num_output": 4,
        "group": 2,
        "bias_term": True,
        "depthwise": False,
        "kernel": (3, 3),
        "stride": (2, 2),
        "pad": (1, 1),
        "dilation": (2, 2),
    }


def test_sizes_apart_leave_the_other_pad_at_zero():
    options = "num_output: 1 kernel_h: 1 kernel_w: 5 pad_w: 2 stride_h: 2 stride_w: 1"
    found = plan("Convolution", conv(options), (1, 1, 7, 10))
    assert found.tops == ((1, 1, 4, 10),)
    assert found.values["pad"] == (0, 2)


def test_values_and_fillers():
    options = "num_output: 5 axis: -2 weight_filler { type: 'xavier' }"
    found = plan("InnerProduct", f"inner_product_param {{ {options} }}", (2, 3, 4))
    assert found.values == {
        "axis": 1,
        "num_output": 5,
        "transpose": False,
        "bias_term": True,
        "normalize": False,
    }
    assert [param.filler.type for param in found.params] == ["xavier", "constant"]


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
