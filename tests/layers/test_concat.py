from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "other", "want"),
    [
        ("", (2, 5, 4), (2, 8, 4)),
        ("axis: -1", (2, 3, 6), (2, 3, 10)),
        ("concat_dim: 0", (5, 3, 4), (7, 3, 4)),
    ],
)
def test_shapes(options: str, other: tuple[int, ...], want: tuple[int, ...]) -> None:
    found = plan("Concat", f"concat_param {{ {options} }}", (2, 3, 4), other)
    assert found.tops == (want,)
    assert shapes_of_params(found) == []


def test_empty_pieces_are_allowed() -> None:
    assert plan("Concat", "", (2, 0), (2, 3)).tops == ((2, 3),)


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(2, 3, 4), (2, 3, 5)], "may differ in axis 1 only"),
        ("", [(2, 3, 4), (2, 3)], "may differ in axis 1 only"),
        ("concat_param { axis: 1 concat_dim: 1 }", [(2, 3)], "give axis or concat_dim, not both"),
        (
            "concat_param { concat_dim: 4294967295 }",
            [(2, 3)],
            "concat_dim 4294967295 is out of range",
        ),
        ("", [(2147483647, 1), (2147483647, 1)], "more than 2147483647 values"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Concat", options, *shapes)
    assert caught.value.layer == "l"
