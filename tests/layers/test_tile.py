from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_shapes() -> None:
    found = plan("Tile", "tile_param { axis: -1 tiles: 3 }", (2, 4))
    assert found.tops == ((2, 12),)
    assert found.values == {"axis": 1, "tiles": 3}
    assert shapes_of_params(found) == []


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(2, 4)], "number of tiles must be given"),
        ("tile_param { tiles: 0 }", [(2, 4)], "tiles must be positive; it is 0"),
        ("tile_param { tiles: 2147483647 }", [(2, 4)], "more than 2147483647 values"),
        ("tile_param { tiles: 1 axis: 2 }", [(2, 4)], "axis 2 is out of range"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Tile", options, *shapes)
    assert caught.value.layer == "l"
