from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def conv(options: str) -> str:
    return f"convolution_param {{ {options} }}"


def test_sizes_weights_and_values() -> None:
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


def test_sizes_apart_leave_the_other_pad_at_zero() -> None:
    options = "num_output: 1 kernel_h: 1 kernel_w: 5 pad_w: 2 stride_h: 2 stride_w: 1"
    found = plan("Convolution", conv(options), (1, 1, 7, 10))
    assert found.tops == ((1, 1, 4, 10),)
    assert found.values["pad"] == (0, 2)


def test_division_truncates_towards_zero() -> None:
    # (3 - 4) / 2 is 0 in C: one output, partly outside.
    assert plan(
        "Convolution", conv("num_output: 1 kernel_size: 4 stride: 2"), (1, 1, 3, 3)
    ).tops == ((1, 1, 1, 1),)


def test_no_bias_and_several_bottoms() -> None:
    options = conv("num_output: 2 kernel_size: 1 bias_term: false")
    found = plan("Convolution", options, (1, 3, 4), (1, 3, 4), tops=2)
    assert found.tops == ((1, 2, 4),) * 2
    assert shapes_of_params(found) == [(2, 3, 1)]


def test_no_spatial_axis() -> None:
    found = plan("Convolution", conv("num_output: 3 kernel_size: 1"), (4, 5))
    assert found.tops == ((4, 3),)
    assert shapes_of_params(found) == [(3, 5), (3,)]


def test_as_many_tops_as_bottoms() -> None:
    with pytest.raises(LayerError, match="as many tops as bottoms"):
        plan("Convolution", conv("num_output: 1 kernel_size: 1"), (1, 1, 2, 2), tops=2)


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        (
            "convolution_param { num_output: 0 kernel_size: 1 }",
            [(2, 3, 8, 9)],
            "num_output must be positive; it is 0",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 0 }",
            [(2, 3, 8, 9)],
            "kernel must be at least 1 .* it is 0",
        ),
        (
            "convolution_param { num_output: 2 }",
            [(2, 3, 8, 9)],
            "kernel_size must be given once.*given 0 times",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: [1, 2, 3] }",
            [(2, 3, 8, 9)],
            "2 spatial axes; it is given 3 times",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 kernel_h: 1 }",
            [(2, 3, 8, 9)],
            "kernel_h and kernel_w: give one of them",
        ),
        (
            "convolution_param { num_output: 2 kernel_h: 1 kernel_w: 1 }",
            [(1, 2, 3)],
            "for 2 spatial axes; the input has 1",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 stride_h: 1 }",
            [(2, 3, 8, 9)],
            "stride must be at least 1 .* it is 0",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 dilation: 0 }",
            [(2, 3, 8, 9)],
            "dilation must be at least 1",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 group: 0 }",
            [(2, 3, 8, 9)],
            "group must be positive",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 group: 2 }",
            [(2, 3, 8, 9)],
            "3 input channels do not divide into 2",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 group: 3 }",
            [(2, 3, 8, 9)],
            "num_output 2 does not divide into 3",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 12 }",
            [(2, 3, 8, 9)],
            "does not fit the input 2 x 3 x 8 x 9",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 axis: 4 }",
            [(2, 3, 8, 9)],
            "axis 4 is out of range",
        ),
        (
            "convolution_param { num_output: 2147483648 kernel_size: 1 }",
            [(2, 3, 8, 9)],
            "more than 2147483647 values",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 pad: 4294967295 }",
            [(2, 3, 8, 9)],
            "below 2\\^31",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 pad: 2000000000 }",
            [(2, 3, 8, 9)],
            "more than 2147483647 values",
        ),
        (
            "convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: 'glorot' } }",
            [(2, 3, 8, 9)],
            "glorot",
        ),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Convolution", options, *shapes)
    assert caught.value.layer == "l"
