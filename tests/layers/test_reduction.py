from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(("axis", "want"), [(0, ()), (1, (2,)), (-1, (2, 3))])
def test_shapes(axis: int, want: tuple[int, ...]) -> None:
    found = plan("Reduction", f"reduction_param {{ axis: {axis} }}", (2, 3, 4))
    assert found.tops == (want,)
    assert shapes_of_params(found) == []


def test_values() -> None:
    found = plan("Reduction", "reduction_param { operation: SUMSQ coeff: 0.5 }", (2, 3))
    assert found.values == {"axis": 0, "operation": "sumsq", "coeff": 0.5}


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("reduction_param { axis: 2 }", [(2, 4)], "axis 2 is out of range"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Reduction", options, *shapes)
    assert caught.value.layer == "l"
