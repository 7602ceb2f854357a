from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "params"),
    [("", [(3,)]), ("axis: 0 num_axes: 2", [(2, 3)]), ("num_axes: -1", [(3, 4)])],
)
def test_learned(options: str, params: list[tuple[int, ...]]) -> None:
    found = plan("Bias", f"bias_param {{ {options} }}", (2, 3, 4))
    assert found.tops == ((2, 3, 4),)
    assert shapes_of_params(found) == params
    assert found.params[0].filler.value == 0


def test_given() -> None:
    found = plan("Bias", "bias_param { axis: -1 }", (2, 3, 4), (4,))
    assert shapes_of_params(found) == []
    assert found.values == {"axis": 2, "num_axes": 1}


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("bias_param { num_axes: -2 }", [(2, 3)], "num_axes must be at least 0, or -1"),
        (
            "bias_param { num_axes: 2 }",
            [(2, 3)],
            "2 bias axes from axis 1 on reach past the input 2 x 3",
        ),
        ("bias_param { axis: 2 }", [(2, 3)], "axis 2 is out of range"),
        ("", [(2, 3), (4,)], "the bias blob 4 does not match the input 2 x 3 from axis 1 on"),
        ("", [(2, 3), (3, 1)], "reach past the input"),
        ("", [(2, 3), (3,), (3,)], "takes 1 to 2 bottoms; it has 3"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Bias", options, *shapes)
    assert caught.value.layer == "l"
