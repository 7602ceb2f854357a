"""MatMul against numpy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import build, draw, same


def layer(options: str = "") -> str:
    return (
        'layer { name: "l" type: "MatMul" bottom: "a" bottom: "b" top: "y" '
        f"matmul_param {{ {options} }} }}"
    )


@pytest.mark.parametrize("turned_a", [False, True])
@pytest.mark.parametrize("turned_b", [False, True])
@pytest.mark.parametrize(
    ("before_a", "before_b"), [((), ()), ((2, 3), (2, 3)), ((2, 1), (2, 3)), ((2, 3), (1, 1))]
)
def test_values_and_gradient(
    turned_a: bool, turned_b: bool, before_a: tuple[int, ...], before_b: tuple[int, ...]
) -> None:
    a = draw(*before_a, *((4, 2) if turned_a else (2, 4)))
    b = draw(*before_b, *((5, 4) if turned_b else (4, 5)), seed=1)
    text = layer(f"transpose_a: {str(turned_a).lower()} transpose_b: {str(turned_b).lower()}")
    net = build(text, {"a": a, "b": b})
    net.forward()
    first = np.swapaxes(a, -1, -2) if turned_a else a
    second = np.swapaxes(b, -1, -2) if turned_b else b
    same(net.blobs["y"].data, np.matmul(first, second), 1e-5, 1e-5)
    check_gradients(text, {"a": a, "b": b})


def test_matrices_that_do_not_fit() -> None:
    with pytest.raises(LayerError, match="the matrices 2 x 3 and 4 x 5 do not fit each other"):
        build(layer(), {"a": draw(2, 3), "b": draw(4, 5)})
