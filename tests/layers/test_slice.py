from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "tops", "want"),
    [
        ("", 3, ((2, 2), (2, 2), (2, 2))),
        ("slice_point: [1, 4]", 3, ((2, 1), (2, 3), (2, 2))),
        ("slice_point: 6", 2, ((2, 6), (2, 0))),
        ("axis: -2", 2, ((1, 6), (1, 6))),
        ("slice_dim: 0", 1, ((2, 6),)),
    ],
)
def test_shapes(options: str, tops: int, want: tuple[tuple[int, ...], ...]) -> None:
    found = plan("Slice", f"slice_param {{ {options} }}", (2, 6), tops=tops)
    assert found.tops == want
    assert shapes_of_params(found) == []


def test_bounds() -> None:
    found = plan("Slice", "slice_param { slice_point: [1, 4] }", (2, 6), tops=3)
    assert found.values == {"axis": 1, "bounds": (0, 1, 4, 6)}


@pytest.mark.parametrize(
    ("options", "tops", "says"),
    [
        ("", 4, "4 tops do not divide the axis of size 6"),
        ("slice_point: 1", 3, "3 tops need 2 slice points; 1 are given"),
        ("slice_point: [3, 2]", 3, "must rise"),
        ("slice_point: 0", 2, "must rise"),
        ("slice_point: 7", 2, "at most 6"),
        ("slice_point: 4294967295", 2, "at most 6"),
        ("axis: 1 slice_dim: 1", 2, "give axis or slice_dim"),
    ],
)
def test_refused(options: str, tops: int, says: str) -> None:
    with pytest.raises(LayerError, match=says):
        plan("Slice", f"slice_param {{ {options} }}", (2, 6), tops=tops)
