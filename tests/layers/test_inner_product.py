from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "top", "params"),
    [
        ("num_output: 5", (2, 5), [(5, 12), (5,)]),
        ("num_output: 5 axis: 2", (2, 3, 5), [(5, 4), (5,)]),
        ("num_output: 5 axis: -1 bias_term: false", (2, 3, 5), [(5, 4)]),
        ("num_output: 5 transpose: true", (2, 5), [(12, 5), (5,)]),
        ("num_output: 5 axis: 0", (5,), [(5, 24), (5,)]),
    ],
)
def test_shapes(options: str, top: tuple[int, ...], params: list[tuple[int, ...]]) -> None:
    found = plan("InnerProduct", f"inner_product_param {{ {options} }}", (2, 3, 4))
    assert found.tops == (top,)
    assert shapes_of_params(found) == params


def test_values_and_fillers() -> None:
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


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(2, 3, 8, 9)], "num_output must be positive; it is 0"),
        (
            "inner_product_param { num_output: 1 axis: 4 }",
            [(2, 3, 8, 9)],
            "axis 4 is out of range for the shape 2 x 3 x 8 x 9",
        ),
        (
            "inner_product_param { num_output: 4294967295 }",
            [(2, 3, 8, 9)],
            "more than 2147483647 values",
        ),
        (
            "inner_product_param { num_output: 1 bias_filler { type: 'xavier' sparse: 2 } }",
            [(2, 3, 8, 9)],
            "sparse",
        ),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("InnerProduct", options, *shapes)
    assert caught.value.layer == "l"
