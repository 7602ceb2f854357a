from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    same_in_any_number_of_threads,
    same_in_blocks,
    values,
)

OPTIONS = [
    "local_size: 5 alpha: 0.5 beta: 0.75",
    "local_size: 3 alpha: 0.5 beta: 0.75 k: 2",
    "local_size: 5 alpha: 0.7 beta: 0.5",
    "local_size: 1 alpha: 0.2 beta: 0.75",
    "local_size: 99 alpha: 5 beta: 0.75",
    "local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL",
    "local_size: 5 alpha: 0.5 beta: 0.4 k: 9 norm_region: WITHIN_CHANNEL",
]


def text(options: str) -> str:
    return layer_text("LRN", f"lrn_param {{ {options} }}")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("channels", [3, 16])
def test_gradients(options: str, channels: int) -> None:
    check_gradients(text(options), {"x": np.sin(values(1, channels, 3, 4))})


def reference(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    half, wide = size // 2, x.astype(np.float64) ** 2
    sums = [wide[:, max(0, c - half) : c + half + 1].sum(1) for c in range(x.shape[1])]
    return x * (k + alpha / size * np.stack(sums, 1)) ** -beta


@pytest.mark.parametrize("size", [1, 3, 5, 7])
@pytest.mark.parametrize("beta", [0.75, 0.5])
@pytest.mark.parametrize("channels", [1, 4, 16, 20, 48])
def test_across_channels(size: int, beta: float, channels: int) -> None:
    x = values(2, channels, 3, 5)
    y, *_ = passes(text(f"local_size: {size} alpha: 0.3 beta: {beta} k: 1.5"), {"x": x})
    np.testing.assert_allclose(y, reference(x, size, 0.3, beta, 1.5), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("channels", [3, 16, 20])
def test_layouts(options: str, channels: int) -> None:
    same_in_blocks("LRN", f"lrn_param {{ {options} }}", values(2, channels, 5, 4))


@pytest.mark.parametrize("options", OPTIONS)
def test_threads(options: str) -> None:
    same_in_any_number_of_threads(text(options), {"x": values(8, 16, 12, 12)})
