from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import layer_text, passes, same_in_blocks, values


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def text(axis: int, **names: str) -> str:
    return layer_text("Softmax", f"softmax_param {{ axis: {axis} }}", **names)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gradients(axis: int) -> None:
    check_gradients(text(axis), {"x": np.sin(values(2, 3, 2, 4))})


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 21, 9), (2, 3, 4, 2, 2, 3)])
def test_every_axis(shape: tuple[int, ...]) -> None:
    x = values(*shape)
    for axis in range(len(shape)):
        y, dy, net = passes(text(axis), {"x": x})
        want = softmax(x, axis)
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-7)
        slope = want * (dy - (dy * want).sum(axis, keepdims=True))
        np.testing.assert_allclose(net.blobs["x"].diff, slope, rtol=1e-4, atol=1e-6)


def test_in_place() -> None:
    front = layer_text("Power", top="p").replace('"l"', '"front_p"')
    check_gradients(front + text(1, bottom="p", top="p"), {"x": np.sin(values(2, 3, 2))})


@pytest.mark.parametrize("channels", [3, 16, 20])
@pytest.mark.parametrize("axis", [1, 2])
def test_layouts(channels: int, axis: int) -> None:
    same_in_blocks(
        "Softmax", f"softmax_param {{ axis: {axis} }}", np.sin(values(2, channels, 4, 3))
    )
