from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import (
    layer_text,
    same_in_any_number_of_threads,
    values,
)

OPTIONS = [
    "",
    "normalize_variance: false",
    "across_channels: true",
    "across_channels: true normalize_variance: false",
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [(2, 3, 3, 4), (2, 3, 5)])
def test_gradients(options: str, shape: tuple[int, ...]) -> None:
    if len(shape) == 3:
        shape = (2, 3, 12)
    check_gradients(layer_text("MVN", f"mvn_param {{ {options} }}"), {"x": np.sin(values(*shape))})


@pytest.mark.parametrize("options", OPTIONS)
def test_in_place_and_overwritten(options: str) -> None:
    """Caffe reads its own result in the backward pass; a layer in place may have changed it."""
    text = layer_text("Power", top="p").replace('"l"', '"front_p"')
    text += layer_text("MVN", f"mvn_param {{ {options} }}", "p", "p")
    text += layer_text("Scale", "scale_param { filler { value: 3 } }", "p", "p").replace(
        '"l"', '"after"'
    )
    check_gradients(text, {"x": np.sin(values(2, 3, 3, 4))})


@pytest.mark.parametrize("options", OPTIONS)
def test_threads(options: str) -> None:
    text = layer_text("MVN", f"mvn_param {{ {options} }}")
    same_in_any_number_of_threads(text, {"x": values(8, 16, 20, 20)})
