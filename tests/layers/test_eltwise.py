from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_values() -> None:
    found = plan("Eltwise", "", (2, 3), (2, 3))
    assert found.tops == ((2, 3),)
    assert shapes_of_params(found) == []
    assert found.values == {"operation": "sum", "coeff": (1.0, 1.0), "stable_prod_grad": True}
    scaled = plan("Eltwise", "eltwise_param { coeff: [1, -2] }", (2, 3), (2, 3))
    assert scaled.values["coeff"] == (1.0, -2.0)


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("", [(2, 3), (3, 2)], "bottom 0 is 2 x 3, bottom 1 is 3 x 2"),
        ("", [(2, 3)], "takes at least 2 bottoms; it has 1"),
        ("eltwise_param { coeff: 1 }", [(2, 3), (2, 3)], "one coeff a bottom; it has 1 for 2"),
        ("eltwise_param { operation: PROD coeff: [1, 2] }", [(2,), (2,)], "coeff is for SUM"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Eltwise", options, *shapes)
    assert caught.value.layer == "l"
