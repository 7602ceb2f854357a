from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import (
    layer_text,
    same_in_any_number_of_threads,
    same_in_blocks,
    values,
)

LEARNED = ["", "axis: 0", "axis: 0 num_axes: 2", "axis: 1 num_axes: -1", "axis: -1", "num_axes: 0"]
GIVEN = [("axis: 1", (3,)), ("axis: 0", (2, 3)), ("axis: 0", (2, 3, 2, 4)), ("axis: -1", (4,))]


def x(*shape: int, seed: int = 0) -> Any:
    return np.sin(values(*shape, seed=seed))


@pytest.mark.parametrize("options", LEARNED)
@pytest.mark.parametrize("bias", ["", "bias_term: true"])
@pytest.mark.parametrize("kind", ["Scale", "Bias"])
def test_learned(options: str, bias: str, kind: str) -> None:
    field = "scale_param" if kind == "Scale" else "bias_param"
    rest = f"{options} {bias if kind == 'Scale' else ''} filler {{ type: 'uniform' }}"
    check_gradients(layer_text(kind, f"{field} {{ {rest} }}"), {"x": x(2, 3, 2, 4)})


@pytest.mark.parametrize(("options", "shape"), [*GIVEN, ("", ())])
@pytest.mark.parametrize("kind", ["Scale", "Bias"])
def test_given(options: str, shape: tuple[int, ...], kind: str) -> None:
    field = "scale_param" if kind == "Scale" else "bias_param"
    text = layer_text(kind, f"{field} {{ {options} }}", bottom="x z")
    check_gradients(text, {"x": x(2, 3, 2, 4), "z": x(*shape, seed=1) if shape else np.float32(2)})


def test_given_with_learned_bias() -> None:
    text = layer_text("Scale", "scale_param { bias_term: true }", bottom="x z")
    check_gradients(text, {"x": x(2, 3, 2, 4), "z": x(3, seed=1)})


@pytest.mark.parametrize("kind", ["Scale", "Bias"])
@pytest.mark.parametrize("second", ["", " z"])
def test_in_place(kind: str, second: str) -> None:
    """Behind a Power, since an input that is overwritten cannot be moved."""
    text = layer_text("Power", "power_param { scale: 2 }", top="p").replace('"l"', '"front_p"')
    text += layer_text(kind, bottom=f"p{second}", top="p")
    inputs = {"x": x(2, 3, 2, 4)} | ({"z": x(3, seed=1)} if second else {})
    check_gradients(text, inputs)


@pytest.mark.parametrize("channels", [3, 16, 20])
@pytest.mark.parametrize("axes", ["", "axis: 0 num_axes: 2", "num_axes: 0"])
def test_layouts(channels: int, axes: str) -> None:
    options = f"scale_param {{ bias_term: true {axes} filler {{ value: 2 }} "
    same_in_blocks("Scale", options + "bias_filler { value: 3 } }", x(3, channels, 5, 4))
    same_in_blocks("Bias", f"bias_param {{ {axes} filler {{ value: 2 }} }}", x(3, channels, 5, 4))


@pytest.mark.parametrize("shape", [(8, 24, 20, 20), (300, 700), (1, 1, 90000)])
@pytest.mark.parametrize("axes", ["", "num_axes: 0", "axis: 0 num_axes: -1"])
def test_threads(shape: tuple[int, ...], axes: str) -> None:
    text = layer_text("Scale", f"scale_param {{ bias_term: true {axes} }}")
    same_in_any_number_of_threads(text, {"x": x(*shape)})
