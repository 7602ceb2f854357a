from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_values() -> None:
    found = plan("LRN", "", (2, 3, 4, 5))
    assert found.tops == ((2, 3, 4, 5),)
    assert shapes_of_params(found) == []
    assert found.values == {
        "local_size": 5,
        "alpha": 1.0,
        "beta": 0.75,
        "k": 1.0,
        "norm_region": "across_channels",
    }
    within = plan("LRN", "lrn_param { norm_region: WITHIN_CHANNEL }", (2, 3, 4, 5))
    assert within.values["norm_region"] == "within_channel"


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("lrn_param { local_size: 4 }", [(2, 3, 8, 9)], "local_size must be odd .* it is 4"),
        ("lrn_param { local_size: 4294967295 }", [(2, 3, 8, 9)], "below 2\\^31"),
        ("", [(2, 3)], "takes 4 axes"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("LRN", options, *shapes)
    assert caught.value.layer == "l"
