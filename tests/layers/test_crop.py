from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "want", "offset"),
    [
        ("", (2, 3, 4, 5), (0, 0, 0, 0)),
        ("axis: 1 offset: 1", (2, 2, 4, 5), (0, 1, 1, 1)),
        ("axis: -2 offset: [2, 3]", (2, 3, 4, 5), (0, 0, 2, 3)),
    ],
)
def test_sizes(options: str, want: tuple[int, ...], offset: tuple[int, ...]) -> None:
    found = plan("Crop", f"crop_param {{ {options} }}", (2, 3, 6, 8), (7, 2, 4, 5))
    assert found.tops == (want,)
    assert found.values["offset"] == offset
    assert shapes_of_params(found) == []


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        (
            "crop_param { offset: [1, 2, 3] }",
            [(2, 3, 6, 8), (2, 3, 4, 5)],
            "once for each of the 2 axes",
        ),
        (
            "crop_param { offset: 3 }",
            [(2, 3, 6, 8), (2, 3, 4, 5)],
            "axis 2 is out of bounds: offset 3 and size 4 in 6",
        ),
        ("crop_param { offset: 4294967295 }", [(2, 3, 6, 8), (2, 3, 4, 5)], "out of bounds"),
        ("", [(2, 3, 6, 8), (4, 5)], "fewer axes"),
        ("crop_param { axis: 4 }", [(2, 3, 6, 8), (2, 3, 4, 5)], "axis 4 is out of range"),
        ("", [(2, 3, 6, 8)], "takes 2 bottoms; it has 1"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Crop", options, *shapes)
    assert caught.value.layer == "l"
