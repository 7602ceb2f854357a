"""Filter, BatchReindex, Silence."""

from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import layer, plan


def test_filter() -> None:
    found = plan("Filter", "", (4, 3), (4, 2, 2), (4, 1), tops=2)
    assert found.tops == ((4, 3), (4, 2, 2))
    assert found.values == {"num": 4}
    made = layer("Filter", bottoms=3, tops=2)
    assert [made.force_backward(i) for i in range(3)] == [True, True, True]


@pytest.mark.parametrize(
    ("shapes", "tops", "says"),
    [
        ([(4, 3), (4, 2)], 1, "the selector holds one value for each item; its shape is 4 x 2"),
        ([(4, 3), ()], 1, "its shape is scalar"),
        ([(4, 3), (5,)], 1, "the selector has 5 items; a bottom of shape 4 x 3"),
        ([(4, 3), (4,)], 2, "1 bottoms besides the selector need as many tops; there are 2"),
    ],
)
def test_filter_refused(shapes: list[tuple[int, ...]], tops: int, says: str) -> None:
    with pytest.raises(LayerError, match=says):
        plan("Filter", "", *shapes, tops=tops)


def test_batch_reindex() -> None:
    found = plan("BatchReindex", "", (5, 2, 3), (7,))
    assert found.tops == ((7, 2, 3),)
    assert found.values == {"num": 5, "inner": 6}
    with pytest.raises(LayerError, match="exactly 1 axis; their shape is 7 x 1"):
        plan("BatchReindex", "", (5, 2), (7, 1))
    with pytest.raises(LayerError, match="the data needs at least 1 axis"):
        plan("BatchReindex", "", (), (7,))


def test_silence() -> None:
    assert plan("Silence", "", (2,), (), (0, 3), tops=0).tops == ()
    with pytest.raises(LayerError, match="takes 0 tops; it has 1"):
        plan("Silence", "", (2,))
