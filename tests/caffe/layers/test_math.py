"""Math against numpy and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same


def text(function: str) -> str:
    options = f"function: {function}" if function else ""
    return f'layer {{ name: "l" type: "Math" bottom: "x" top: "y" math_param {{ {options} }} }}'


WHOLE = {"FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.round, "TRUNC": np.trunc}


@pytest.mark.parametrize("function", WHOLE)
def test_whole_numbers(function: str) -> None:
    x = np.concatenate([3 * draw(1, 40), np.arange(-20, 20)[None] / np.float32(4)])
    x = np.append(x, [[np.inf, -np.inf, np.nan, 3e9]] * 2, 1).astype(np.float32)
    net = build(text(function), {"x": x})
    net.forward()
    want: Any = WHOLE[function](x)
    same(net.blobs["y"].data, want, 0, 0)
    backward(net)
    assert not net.blobs["x"].diff.any()


@pytest.mark.parametrize(("function", "of"), [("SIN", np.sin), ("COS", np.cos)])
def test_waves(function: str, of: Any) -> None:
    x = 9 * draw(2, 3, 5)
    net = build(text(function), {"x": x})
    net.forward()
    same(net.blobs["y"].data, of(x.astype(np.float64)).astype(np.float32), 1e-6, 1e-6)
    check_gradients(text(function), {"x": x})


def test_no_function() -> None:
    with pytest.raises(LayerError, match="function must be given: FLOOR, CEIL, ROUND"):
        build(text(""), {"x": draw(2)})
