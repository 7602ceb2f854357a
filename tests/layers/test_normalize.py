from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_shapes() -> None:
    found = plan("Normalize", "", (2, 3, 4, 5))
    assert found.tops == ((2, 3, 4, 5),)
    assert shapes_of_params(found) == [()]
    assert found.params[0].filler.value == 1
    assert found.values["across_spatial"] is True
    assert found.values["eps"] == pytest.approx(1e-10)


def test_one_factor_a_channel() -> None:
    options = "norm_param { channel_shared: false scale_filler { type: 'constant' value: 20 } }"
    found = plan("Normalize", options, (2, 3, 4, 5))
    assert shapes_of_params(found) == [(3,)]
    assert found.params[0].filler.value == 20


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(3,)], "at least 2 axes"),
        ("", [(1, 1, 1, 1, 1)], "at most 4 axes"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Normalize", options, *shapes)
    assert caught.value.layer == "l"
