from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_shapes() -> None:
    found = plan("ShuffleChannel", "shuffle_channel_param { group: 3 }", (2, 6, 4, 4))
    assert found.tops == ((2, 6, 4, 4),)
    assert found.values == {"group": 3}
    assert shapes_of_params(found) == []
    assert plan("ShuffleChannel", "", (2, 6)).tops == ((2, 6, 1, 1),)


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        (
            "shuffle_channel_param { group: 4 }",
            [(2, 6, 4, 4)],
            "6 channels do not divide into 4 groups",
        ),
        ("shuffle_channel_param { group: 0 }", [(2, 6, 4, 4)], "group must be positive"),
        ("", [(6,)], "needs a channel axis"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("ShuffleChannel", options, *shapes)
    assert caught.value.layer == "l"
