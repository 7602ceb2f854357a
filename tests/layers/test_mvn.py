from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_always_four_axes() -> None:
    found = plan("MVN", "", (2, 3))
    assert found.tops == ((2, 3, 1, 1),)
    assert shapes_of_params(found) == []
    assert found.values["normalize_variance"] is True
    assert found.values["across_channels"] is False
    assert found.values["eps"] == pytest.approx(1e-9)


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(1, 1, 1, 1, 1)], "at most 4 axes"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("MVN", options, *shapes)
    assert caught.value.layer == "l"
