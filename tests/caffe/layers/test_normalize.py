from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    same_in_any_number_of_threads,
    values,
)

OPTIONS = list(itertools.product(("false", "true"), repeat=2))


def text(whole: str, shared: str) -> str:
    rest = "scale_filler { type: 'uniform' min: 1 max: 3 }"
    options = f"across_spatial: {whole} channel_shared: {shared} {rest}"
    return layer_text("Normalize", f"norm_param {{ {options} }}")


@pytest.mark.parametrize(("whole", "shared"), OPTIONS)
@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (2, 4), (2, 3, 4)])
def test_gradients(whole: str, shared: str, shape: tuple[int, ...]) -> None:
    check_gradients(text(whole, shared), {"x": np.sin(values(*shape)) + 0.2})


@pytest.mark.parametrize(("whole", "shared"), OPTIONS)
def test_values(whole: str, shared: str) -> None:
    x = values(2, 3, 4, 5)
    y, _, net = passes(text(whole, shared), {"x": x})
    norm = np.sqrt((x**2).sum((1, 2, 3) if whole == "true" else 1, keepdims=True) + 1e-10)
    factor = net.params["l"][0].data.reshape(-1, 1, 1)
    np.testing.assert_allclose(y, x / norm * factor, rtol=1e-5)


@pytest.mark.parametrize(("whole", "shared"), OPTIONS)
def test_threads(whole: str, shared: str) -> None:
    options = f"norm_param {{ across_spatial: {whole} channel_shared: {shared} }}"
    same_in_any_number_of_threads(layer_text("Normalize", options), {"x": values(8, 16, 20, 20)})
