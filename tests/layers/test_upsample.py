from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ("", (6, 10)),
        ("scale: 3", (9, 15)),
        ("scale_h: 2 scale_w: 4", (6, 20)),
        ("pad_out_h: true", (5, 10)),
        ("upsample_h: 7 upsample_w: 11", (7, 11)),
    ],
)
def test_unpooling(options: str, want: tuple[int, int]) -> None:
    found = plan("Upsample", f"upsample_param {{ {options} }}", (1, 2, 3, 5), (1, 2, 3, 5))
    assert found.tops == ((1, 2, *want),)
    assert shapes_of_params(found) == []
    assert found.values == {"method": "unpool"}


def test_repeating() -> None:
    found = plan("Upsample", "upsample_param { scale: 3 }", (1, 2, 3, 5))
    assert found.tops == ((1, 2, 9, 15),)
    assert found.values == {"method": "repeat", "scale": 3}


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(1, 2, 3, 5), (1, 2, 3, 4)], "the mask 1 x 2 x 3 x 4 must have the input's shape"),
        ("upsample_param { scale: 1 }", [(1, 2, 3, 5), (1, 2, 3, 5)], "scale must be above 1"),
        (
            "upsample_param { scale: 2 scale_h: 2 scale_w: 2 }",
            [(1, 2, 3, 5), (1, 2, 3, 5)],
            "or scale, or scale_h and scale_w",
        ),
        (
            "upsample_param { scale: 3 pad_out_w: true }",
            [(1, 2, 3, 5), (1, 2, 3, 5)],
            "go with a scale of 2",
        ),
        (
            "upsample_param { upsample_h: 1 upsample_w: 9 }",
            [(1, 2, 3, 5), (1, 2, 3, 5)],
            "must be above 1",
        ),
        ("upsample_param { scale: 0 }", [(1, 2, 3, 5)], "scale must be positive"),
        ("upsample_param { scale: 4294967295 }", [(1, 2, 3, 5)], "more than 2147483647 values"),
        ("", [(1, 2, 3)], "takes 4 axes"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Upsample", options, *shapes)
    assert caught.value.layer == "l"
