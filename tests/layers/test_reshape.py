from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ("shape { dim: 4 dim: 6 }", (4, 6)),
        ("shape { dim: 0 dim: -1 }", (2, 12)),
        ("shape { dim: 2 dim: -1 dim: 2 } axis: 1", (2, 2, 3, 2)),
        ("shape { dim: 1 } axis: 1 num_axes: 0", (2, 1, 3, 4)),
        ("shape { dim: 1 } axis: -1", (2, 3, 4, 1)),
        ("shape { dim: 12 } axis: -3", (2, 12)),
        ("shape { dim: 6 } num_axes: 2", (6, 4)),
        ("shape { dim: -1 }", (24,)),
    ],
)
def test_shapes(options: str, want: tuple[int, ...]) -> None:
    found = plan("Reshape", f"reshape_param {{ {options} }}", (2, 3, 4))
    assert found.tops == (want,)
    assert shapes_of_params(found) == []


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("reshape_param { shape { dim: -1 dim: -1 } }", [(2, 3)], "at most one size may be -1"),
        ("reshape_param { shape { dim: -2 dim: -3 } }", [(2, 3)], "positive, 0 or -1"),
        ("reshape_param { shape { dim: 5 } }", [(2, 3)], "2 x 3 has 6 values, 5 has 5"),
        ("reshape_param { shape { dim: 4 dim: -1 } }", [(2, 3)], "do not divide by 4"),
        ("reshape_param { shape { dim: 0 dim: -1 } }", [(0, 3)], "do not divide by 0"),
        (
            "reshape_param { shape { dim: 6 dim: 1 dim: 0 } }",
            [(2, 3)],
            "copies axis 2, which 2 x 3 does not have",
        ),
        ("reshape_param { axis: 3 }", [(2, 3)], "axis 3 is out of range"),
        ("reshape_param { axis: -4 }", [(2, 3)], "axis -4 is out of range"),
        ("reshape_param { num_axes: -2 }", [(2, 3)], "num_axes must be at least 0"),
        ("reshape_param { axis: 1 num_axes: 2 }", [(2, 3)], "2 axes from axis 1 on reach past"),
        (
            "reshape_param { shape { dim: 9223372036854775807 dim: 9223372036854775807 } }",
            [(2, 3)],
            "has 6 values",
        ),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Reshape", options, *shapes)
    assert caught.value.layer == "l"
