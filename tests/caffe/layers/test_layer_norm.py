"""LayerNorm against numpy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import build, draw, same


@pytest.mark.parametrize(("options", "axis"), [("", 2), ("axis: 1", 1), ("axis: 2 eps: 0.5", 2)])
def test_values_and_gradient(options: str, axis: int) -> None:
    text = (
        f'layer {{ name: "l" type: "LayerNorm" bottom: "x" top: "y" '
        f"layer_norm_param {{ {options} }} }}"
    )
    x = 3 * draw(2, 4, 5) + 7
    net = build(text, {"x": x})
    net.forward()
    axes = tuple(range(axis, 3))
    eps = 0.5 if "eps" in options else 1e-5
    wide = x.astype(np.float64)
    want = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + eps)
    same(net.blobs["y"].data, want, 1e-5, 1e-5)
    check_gradients(text, {"x": x})
