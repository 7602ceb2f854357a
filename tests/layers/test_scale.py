from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "params", "axis"),
    [
        ("", [(3,)], 1),
        ("bias_term: true", [(3,), (3,)], 1),
        ("axis: 0 num_axes: 2", [(2, 3)], 0),
        ("axis: -2 num_axes: -1", [(3, 4)], 1),
        ("num_axes: 0", [()], 0),
    ],
)
def test_learned(options: str, params: list[tuple[int, ...]], axis: int) -> None:
    found = plan("Scale", f"scale_param {{ {options} }}", (2, 3, 4))
    assert found.tops == ((2, 3, 4),)
    assert shapes_of_params(found) == params
    assert found.values["axis"] == axis
    assert found.params[0].filler.value == 1


def test_given() -> None:
    found = plan("Scale", "scale_param { axis: 0 bias_term: true }", (2, 3, 4), (2, 3))
    assert shapes_of_params(found) == [(2, 3)]
    assert found.params[0].filler.value == 0
    assert found.values == {"axis": 0, "num_axes": 2, "bias_term": True}
    assert plan("Scale", "", (2, 3, 4), ()).values["axis"] == 0


def test_a_given_filler_stays() -> None:
    found = plan("Scale", "scale_param { filler { type: 'uniform' max: 2 } }", (2, 3))
    assert found.params[0].filler.type == "uniform"


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("scale_param { num_axes: -2 }", [(2, 3)], "num_axes must be at least 0, or -1"),
        (
            "scale_param { num_axes: 2 }",
            [(2, 3)],
            "2 scale axes from axis 1 on reach past the input 2 x 3",
        ),
        ("scale_param { axis: 2 }", [(2, 3)], "axis 2 is out of range"),
        ("", [(2, 3), (4,)], "the scale blob 4 does not match the input 2 x 3 from axis 1 on"),
        ("", [(2, 3), (3, 1)], "reach past the input"),
        ("", [(2, 3), (3,), (3,)], "takes 1 to 2 bottoms; it has 3"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Scale", options, *shapes)
    assert caught.value.layer == "l"
