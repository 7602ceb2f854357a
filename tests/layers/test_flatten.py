from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ("", (2, 60)),
        ("axis: 2", (2, 3, 20)),
        ("axis: 0 end_axis: -2", (24, 5)),
        ("axis: 1 end_axis: 1", (2, 3, 4, 5)),
        ("axis: 2 end_axis: 1", (2, 3, 1, 4, 5)),
    ],
)
def test_shapes(options: str, want: tuple[int, ...]) -> None:
    found = plan("Flatten", f"flatten_param {{ {options} }}", (2, 3, 4, 5))
    assert found.tops == (want,)
    assert shapes_of_params(found) == []


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("flatten_param { axis: 3 end_axis: 1 }", [(2, 3, 8, 9)], "end_axis 1 lies before axis 3"),
        ("", [(4,)], "axis 1 is out of range"),
        ("flatten_param { end_axis: 4 }", [(2, 3, 8, 9)], "end_axis 4 is out of range"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Flatten", options, *shapes)
    assert caught.value.layer == "l"
