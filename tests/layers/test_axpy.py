from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize("scale", [(2, 3), (2, 3, 1, 1)])
def test_shapes(scale: tuple[int, ...]) -> None:
    found = plan("Axpy", "", scale, (2, 3, 4, 5), (2, 3, 4, 5))
    assert found.tops == ((2, 3, 4, 5),)
    assert shapes_of_params(found) == []


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        (
            "",
            [(2, 3), (2, 3, 4, 5), (2, 3, 5, 4)],
            "x 2 x 3 x 4 x 5 and y 2 x 3 x 5 x 4 must have one shape",
        ),
        ("", [(2, 4), (2, 3, 4, 5), (2, 3, 4, 5)], "the scale 2 x 4 must have one value"),
        ("", [(2, 3, 4, 1), (2, 3, 4, 5), (2, 3, 4, 5)], "must have one value"),
        ("", [(2,), (2,), (2,)], "at least 2 axes"),
        ("", [(2, 3), (2, 3)], "takes 3 bottoms; it has 2"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Axpy", options, *shapes)
    assert caught.value.layer == "l"
