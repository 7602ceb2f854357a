from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_every_top_is_the_bottom() -> None:
    found = plan("Split", "", (2, 3), tops=3)
    assert found.tops == ((2, 3),) * 3
    assert shapes_of_params(found) == []


def test_no_top() -> None:
    with pytest.raises(LayerError, match="takes at least 1 top; it has 0"):
        plan("Split", "", (2, 3), tops=0)
