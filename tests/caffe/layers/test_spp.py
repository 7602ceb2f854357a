from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    same_in_any_number_of_threads,
    values,
)


@pytest.mark.parametrize("method", ["MAX", "AVE"])
@pytest.mark.parametrize("height", [1, 2, 3])
def test_gradients(method: str, height: int) -> None:
    text = layer_text("SPP", f"spp_param {{ pyramid_height: {height} pool: {method} }}")
    check_gradients(text, {"x": values(2, 3, 8, 7)})


@pytest.mark.parametrize("method", ["MAX", "AVE", "STOCHASTIC"])
def test_levels_are_poolings_in_a_row(method: str) -> None:
    x = np.abs(values(2, 3, 8, 4)) + 1
    text = layer_text("SPP", f"spp_param {{ pyramid_height: 2 pool: {method} }}")
    y, *_ = passes(text, {"x": x})
    parts = x.reshape(2, 3, 2, 4, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 4, 8)
    if method == "STOCHASTIC":
        assert y.shape == (2, 15)
        assert np.isin(y, x).all()
        return
    fold = np.max if method == "MAX" else np.mean
    want = [fold(x, (2, 3)), fold(parts, 3).reshape(2, -1)]
    np.testing.assert_allclose(y, np.concatenate(want, 1), rtol=1e-5)


@pytest.mark.parametrize("method", ["MAX", "AVE"])
def test_threads(method: str) -> None:
    text = layer_text("SPP", f"spp_param {{ pyramid_height: 3 pool: {method} }}")
    same_in_any_number_of_threads(text, {"x": values(8, 16, 20, 20)})
