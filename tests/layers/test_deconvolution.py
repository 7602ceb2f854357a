from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_sizes_and_weights() -> None:
    options = "convolution_param { num_output: 4 kernel_size: 4 stride: 2 pad: 1 group: 2 }"
    found = plan("Deconvolution", options, (1, 6, 5, 7))
    # 2 (5 - 1) + 4 - 2 = 10
    assert found.tops == ((1, 4, 10, 14),)
    assert shapes_of_params(found) == [(6, 2, 4, 4), (4,)]


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        (
            "convolution_param { num_output: 1 kernel_size: 1 pad: 3 }",
            [(1, 1, 2, 2)],
            "does not fit",
        ),
        (
            "convolution_param { num_output: 1 kernel_h: 2 kernel_w: 4 "
            "weight_filler { type: 'bilinear' } }",
            [(1, 1, 2, 2)],
            "bilinear",
        ),
        (
            "convolution_param { num_output: 1 kernel_size: 1 stride: 2000000000 }",
            [(1, 1, 9, 9)],
            "more than 2147483647",
        ),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Deconvolution", options, *shapes)
    assert caught.value.layer == "l"
