from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_shapes() -> None:
    options = "roi_pooling_param { pooled_h: 6 pooled_w: 7 spatial_scale: 0.0625 }"
    found = plan("ROIPooling", options, (2, 3, 14, 14), (10, 5))
    assert found.tops == ((10, 3, 6, 7),)
    assert found.values == {"pooled": (6, 7), "spatial_scale": 0.0625, "pad_ratio": 0}
    assert shapes_of_params(found) == []


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        (
            "roi_pooling_param { pooled_h: 6 }",
            [(2, 3, 9, 9), (10, 5)],
            "pooled_h and pooled_w must be positive",
        ),
        (
            "roi_pooling_param { pooled_h: 6 pooled_w: 6 }",
            [(2, 3, 9, 9), (10, 4)],
            "a region has 5 values",
        ),
        (
            "roi_pooling_param { pooled_h: 4294967295 pooled_w: 6 }",
            [(2, 3, 9, 9), (10, 5)],
            "more than 2147483647",
        ),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("ROIPooling", options, *shapes)
    assert caught.value.layer == "l"
