from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_one_level_keeps_the_axes() -> None:
    found = plan("SPP", "spp_param { pyramid_height: 1 }", (2, 3, 9, 8))
    assert found.tops == ((2, 3, 1, 1),)
    assert found.values["levels"][0]["kernel"] == (9, 8)


def test_three_levels_are_one_vector() -> None:
    found = plan("SPP", "spp_param { pyramid_height: 3 pool: AVE }", (2, 3, 9, 8))
    # 1 x 1, 2 x 2, and 4 x 4 bins
    assert found.tops == ((2, 3 * 21),)
    assert shapes_of_params(found) == []
    assert [level["kernel"] for level in found.values["levels"]] == [(9, 8), (5, 4), (3, 2)]
    assert [level["pad"] for level in found.values["levels"]] == [(0, 0), (1, 0), (2, 0)]
    assert found.values["method"] == "ave"


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("spp_param { pyramid_height: 0 }", [(2, 3, 8, 9)], "pyramid_height must be positive"),
        (
            "spp_param { pyramid_height: 4294967295 }",
            [(2, 3, 8, 9)],
            "must be smaller than the kernel",
        ),
        ("spp_param { pyramid_height: 2 }", [(1, 1, 0, 4)], "must not be empty"),
        ("spp_param { pyramid_height: 1 }", [(1, 4)], "takes 4 axes"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("SPP", options, *shapes)
    assert caught.value.layer == "l"
