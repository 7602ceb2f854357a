from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import build, draw, same

LAYER = (
    'layer {{ name: "l" type: "Reduction" bottom: "x" top: "y" '
    "reduction_param {{ operation: {} axis: {} coeff: {} }} }}"
)
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "SUM": lambda rows: rows.sum(1),
    "MEAN": lambda rows: rows.mean(1),
    "ASUM": lambda rows: np.abs(rows).sum(1),
    "SUMSQ": lambda rows: (rows**2).sum(1),
}


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_values_and_gradients(operation: str, axis: int) -> None:
    x = draw(2, 3, 4)
    text = LAYER.format(operation, axis, 1.5)
    net = build(text, {"x": x})
    net.forward()
    kept = x.shape[: axis % 3]
    want = 1.5 * OPERATIONS[operation](x.astype(np.float64).reshape(int(np.prod(kept)), -1))
    same(net.blobs["y"].data, want.reshape(kept))
    check_gradients(text, {"x": x}, kinks=(0,) if operation == "ASUM" else ())


@pytest.mark.parametrize("shape", [(40, 500), (3, 20000)])
def test_long_sums(shape: tuple[int, int]) -> None:
    x = draw(*shape)
    net = build(LAYER.format("SUM", 1, 1), {"x": x})
    net.forward()
    same(net.blobs["y"].data, x.astype(np.float64).sum(1), 1e-6, 1e-5)


def test_nothing_to_sum() -> None:
    net = build(LAYER.format("MEAN", 1, 1), {"x": draw(2, 0)})
    net.forward()
    same(net.blobs["y"].data, np.zeros(2))
    net.backward()
