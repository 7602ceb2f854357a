from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ("height: 33 width: 65", (33, 65)),
        ("zoom_factor: 8", (49, 65)),  # 6 * 8 + 1, 8 * 8 + 1
        ("shrink_factor: 4", (2, 3)),  # 6 / 4 + 1, 8 / 4 + 1
        ("zoom_factor: 2 shrink_factor: 4", (3, 5)),
        ("zoom_factor: 2 pad_beg: -1 pad_end: -1", (9, 13)),
        ("zoom_factor: 2 height: 5 width: 5", (13, 17)),
    ],
)
def test_sizes(options: str, want: tuple[int, int]) -> None:
    found = plan("Interp", f"interp_param {{ {options} }}", (2, 3, 7, 9))
    assert found.tops == ((2, 3, *want),)
    assert shapes_of_params(found) == []


def test_size_of_a_second_bottom() -> None:
    assert plan("Interp", "", (2, 3, 7, 9), (2, 1, 20, 30)).tops == ((2, 3, 20, 30),)


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(2, 3, 8, 9)], "give height and width, a zoom_factor or a shrink_factor"),
        ("interp_param { height: 3 }", [(2, 3, 8, 9)], "give height and width"),
        (
            "interp_param { height: -3 width: 4 }",
            [(2, 3, 8, 9)],
            "height and width must be positive",
        ),
        ("interp_param { zoom_factor: 0 }", [(2, 3, 8, 9)], "factors must be positive; zoom is 0"),
        ("interp_param { zoom_factor: 2 pad_beg: 1 }", [(2, 3, 8, 9)], "pad_beg can only crop"),
        (
            "interp_param { zoom_factor: 2 pad_beg: -8 }",
            [(2, 3, 8, 9)],
            "nothing of 2 x 3 x 8 x 9 is left",
        ),
        (
            "interp_param { zoom_factor: 2 }",
            [(2, 3, 8, 9), (2, 3, 8, 9)],
            "the second bottom gives the size",
        ),
        ("interp_param { zoom_factor: 2147483647 }", [(2, 3, 8, 9)], "more than 2147483647 values"),
        ("interp_param { zoom_factor: 2 }", [(1, 1, 1, 1, 1)], "at most 4 axes"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Interp", options, *shapes)
    assert caught.value.layer == "l"
