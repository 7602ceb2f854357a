"""Constants of unusual shapes, and operators that get nothing but constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet.errors import FileError
from tests.onnx.graphs import agree, draw, graph, node, old_runtime, onnx, read_model

X = (2, 3, 4, 5)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("weights", ["constant", "computed"])
@pytest.mark.parametrize("bias", [(), (1,), (4,), (1, 4), (3, 1), (3, 4), None])
def test_products_with_any_bias(
    turned: int, weights: str, bias: tuple[int, ...] | None, tmp_path: Path
) -> None:
    """3 x 5 times 5 x 4, or the first matrix stored turned."""
    nodes = [node("Exp", "w", "v")] if weights == "computed" else []
    inputs = "x v" if nodes else "x w"
    constants = {"w": draw(5, 4, seed=1)}
    if bias is not None:
        inputs, constants = f"{inputs} b", {**constants, "b": draw(*bias, seed=2)}
    shapes: dict[str, Any] = {"x": [5, 3] if turned else [3, 5]}
    feeds = {"x": draw(*shapes["x"])}
    if nodes:
        shapes["w"], feeds["w"] = [5, 4], constants.pop("w")
    nodes += [node("Gemm", inputs, transA=turned, alpha=0.5, beta=1.5)]
    agree(graph(nodes, shapes, constants=constants), feeds, tmp_path)


def test_products_of_an_open_number_of_rows(tmp_path: Path) -> None:
    constants = {"w": draw(5, 4, seed=1), "b": draw(1, 1, seed=2)}
    model = graph([node("Gemm", "x w b")], {"x": ["n", 5]}, constants=constants)
    agree(model, {"x": draw(3, 5)}, tmp_path, types=["InnerProduct"])


@old_runtime
@pytest.mark.parametrize(
    ("axis", "scale"),
    [
        *((-1, scale) for scale in ((5,), (1, 5), (1, 1, 5), (1,))),
        *((-2, scale) for scale in ((4, 5), (5,), (4, 1), (1, 1, 4, 5))),
        *((1, scale) for scale in ((3, 4, 5), (4, 5), (1, 3, 4, 5), (3, 1, 5))),
    ],
)
@pytest.mark.parametrize("bias", [None, "same", "one"])
def test_layer_normalisation_with_any_scale(
    axis: int, scale: tuple[int, ...], bias: str | None, tmp_path: Path
) -> None:
    constants = {"s": draw(*scale)}
    if bias is not None:
        constants["b"] = draw(*(scale if bias == "same" else (1,)), seed=1)
    inputs = "x s b" if bias else "x s"
    nodes = [node("LayerNormalization", inputs, axis=axis, epsilon=1e-3)]
    agree(graph(nodes, {"x": ["n", *X[1:]]}, constants=constants), {"x": draw(*X)}, tmp_path)


@old_runtime
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("pads", [[1, 1, 0, 0], [0, 0, 1, 1], [2, 0, 0, 1], [1, 1, 1, 1]])
@pytest.mark.parametrize("size", [12, 13])
@pytest.mark.parametrize("ceil", [0, 1])
def test_windows_with_padding_on_one_side(
    op: str, pads: list[int], size: int, ceil: int, tmp_path: Path
) -> None:
    made = node(op, "x", kernel_shape=[3, 3], strides=[2, 2], pads=pads, ceil_mode=ceil)
    model = graph([made], {"x": ["n", 2, size, size]}, opset=19)
    agree(model, {"x": draw(2, 2, size, size)}, tmp_path)


def test_maxima_of_a_large_image_padded_before_it(tmp_path: Path) -> None:
    made = node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0])
    model = graph([made], {"x": ["n", 1, 113, 113]})
    agree(model, {"x": draw(1, 1, 113, 113)}, tmp_path)


def test_a_computed_blob_that_is_repeated_for_each_record(tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Slice", "s zero one", "n"),
        node("Concat", "n one one", "r", axis=0),
        node("Conv", "c w", "p"),
        node("Tile", "p r", "t"),
        node("Add", "x t"),
    ]
    constants = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "c": draw(1, 3, 6),
        "w": draw(2, 3, 3),
    }
    model = graph(nodes, {"x": ["n", 2, 4]}, constants=constants)
    assert "SizedLike" in agree(model, {"x": draw(3, 2, 4)}, tmp_path)


def test_records_that_are_repeated_as_often_as_there_are_records(tmp_path: Path) -> None:
    nodes = [node("Shape", "x", "s"), node("Tile", "x s")]
    path = tmp_path / "model.onnx"
    onnx.save(graph(nodes, {"x": ["n", 2]}), str(path))
    with pytest.raises(FileError, match="computes with the number of records"):
        read_model(path)
