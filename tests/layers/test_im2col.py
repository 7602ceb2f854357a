from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_windows_become_channels() -> None:
    found = plan(
        "Im2col", "convolution_param { kernel_size: 3 stride: 2 dilation: 2 }", (2, 3, 9, 8)
    )
    # (9 - 5) / 2 + 1 = 3, (8 - 5) / 2 + 1 = 2
    assert found.tops == ((2, 27, 3, 2),)
    assert shapes_of_params(found) == []


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("convolution_param { kernel_size: 1 }", [(4, 5)], "needs a spatial axis after axis 1"),
        ("convolution_param { kernel_size: 9 }", [(1, 1, 4, 4)], "does not fit"),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Im2col", options, *shapes)
    assert caught.value.layer == "l"
