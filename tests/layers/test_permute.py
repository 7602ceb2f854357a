from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("order", "want"),
    [("order: [0, 2, 3, 1]", (2, 4, 5, 3)), ("order: 3", (5, 2, 3, 4)), ("", (2, 3, 4, 5))],
)
def test_shapes(order: str, want: tuple[int, ...]) -> None:
    found = plan("Permute", f"permute_param {{ {order} }}", (2, 3, 4, 5))
    assert found.tops == (want,)
    assert shapes_of_params(found) == []


def test_the_rest_follows_in_order() -> None:
    assert plan("Permute", "permute_param { order: 3 }", (2, 3, 4, 5)).values["order"] == (
        3,
        0,
        1,
        2,
    )


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("permute_param { order: [0, 0] }", [(2, 3, 8, 9)], "names an axis twice"),
        ("permute_param { order: 4294967295 }", [(2, 3, 8, 9)], "order 4294967295 is out of range"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Permute", options, *shapes)
    assert caught.value.layer == "l"
