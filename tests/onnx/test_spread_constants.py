"""Constants of unusual shapes, and operators that get nothing but constants."""

import numpy as np
import pytest

from tests.onnx.graphs import agree, draw, graph, node, old_runtime, refused

X = (2, 3, 4, 5)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("weights", ["constant", "computed"])
@pytest.mark.parametrize("bias", [(), (1,), (4,), (1, 4), (3, 1), (3, 4), None])
def test_products_with_any_bias(turned, weights, bias, tmp_path):
    """3 x 5 times 5 x 4, or the first matrix stored turned."""
    nodes = [node("Exp", "w", "v")] if weights == "computed" else []
    inputs = "x v" if nodes else "x w"
    constants = {"w": draw(5, 4, seed=1)}
    if bias is not None:
        inputs, constants = f"{inputs} b", {**constants, "b": draw(*bias, seed=2)}
    shapes = {"x": [5, 3] if turned else [3, 5]}
    feeds = {"x": draw(*shapes["x"])}
    if nodes:
        shapes["w"], feeds["w"] = [5, 4], constants.pop("w")
    nodes += [node("Gemm", inputs, transA=turned, alpha=0.5, beta=1.5)]
    agree(graph(nodes, shapes, constants=constants), feeds, tmp_path)


def test_products_of_an_open_number_of_rows(tmp_path):
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
def test_layer_normalisation_with_any_scale(axis, scale, bias, tmp_path):
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
def test_windows_with_padding_on_one_side(op, pads, size, ceil, tmp_path):
    made = node(op, "x", kernel_shape=[3, 3], strides=[2, 2], pads=pads, ceil_mode=ceil)
    model = graph([made], {"x": ["n", 2, size, size]}, opset=19)
    agree(model, {"x": draw(2, 2, size, size)}, tmp_path)


def test_maxima_of_a_large_image_padded_before_it(tmp_path):
    made = node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0])
    model = graph([made], {"x": ["n", 1, 113, 113]})
    agree(model, {"x": draw(1, 1, 113, 113)}, tmp_path)


def test_a_computed_blob_that_is_repeated_for_each_record(tmp_path):
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


def test_records_that_are_repeated_as_often_as_there_are_records(tmp_path):
    nodes = [node("Shape", "x", "s"), node("Tile", "x s")]
    refused(
        graph(nodes, {"x": ["n", 2]}), tmp_path, "computes with a size that the model leaves open"
    )


@pytest.mark.parametrize("width", [4, 1])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Max"])
def test_several_rows_that_come_again_for_each_record(op, width, tmp_path):
    """WavLM's positions: of each head, repeated for the records, and laid out as its rows."""
    nodes = [
        node("Shape", "x", "s"),
        node("Slice", "s zero one", "n"),
        node("Reshape", "x rows", "r"),
        node("Concat", "n one one one", "times", axis=0),
        node("Tile", "c times", "t"),
        node("Reshape", "t positions", "p"),
        node(op, "r p"),
    ]
    constants = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "rows": np.array([-1, 3, width]),
        "positions": np.array([-1, 3, 4]),
        "c": draw(1, 2, 3, 4),
    }
    model = graph(nodes, {"x": ["n", 2, 3, width]}, constants=constants)
    agree(model, {"x": draw(5, 2, 3, width)}, tmp_path)


@pytest.mark.parametrize("attributes", [{}, {"k": 1}, {"k": -2, "dtype": 1}])
@pytest.mark.parametrize("of", ["c", "v"])
def test_a_matrix_of_ones_on_a_diagonal(of, attributes, tmp_path):
    nodes = [node("MatMul", "c x", "v"), node("EyeLike", of, "e", **attributes)]
    nodes += [node("MatMul", "x e")] if of == "v" else [node("MatMul", "e x")]
    feeds = {"x": draw(3, 3)}
    agree(graph(nodes, {"x": [3, 3]}, constants={"c": draw(3, 3, seed=1)}), feeds, tmp_path)


@pytest.mark.parametrize("training", [0, 1])
def test_weights_that_are_standardised(training, tmp_path):
    """As NFNet's and BiT's: a BatchNormalization of the weights, each output by its own numbers."""
    constants = {
        "w": draw(1, 4, 27, seed=1),
        "s": draw(4, seed=2),
        "b": draw(4, seed=3),
        "m": draw(4, seed=4),
        "v": np.abs(draw(4, seed=5)) + 0.1,
        "shape": np.array([4, 3, 3, 3]),
    }
    outputs = "n m2 v2" if training else "n"
    nodes = [node("BatchNormalization", "w s b m v", outputs, epsilon=1e-3, training_mode=training)]
    nodes += [node("Reshape", "n shape", "k"), node("Conv", "x k")]
    model = graph(nodes, {"x": ["n", 3, 6, 5]}, constants=constants)
    agree(model, {"x": draw(2, 3, 6, 5)}, tmp_path, types=["Convolution"])


@pytest.mark.parametrize("pads", [[0, 0, -1, -1, 0, 0, 1, 1], [0, 0, 2, -2, 0, 1, -3, 1]])
@pytest.mark.parametrize("value", [0.0, 1.5])
def test_padding_on_one_side_and_cutting_on_the_other(pads, value, tmp_path):
    """As NASNet's factorised reductions."""
    constants = {"p": np.array(pads), "c": np.array(value, np.float32)}
    model = graph([node("Pad", "x p c")], {"x": ["n", 3, 6, 5]}, constants=constants)
    agree(model, {"x": draw(2, 3, 6, 5)}, tmp_path)


def test_padding_by_its_own_values_and_cutting_is_refused(tmp_path):
    model = graph(
        [node("Pad", "x p", mode="reflect")],
        {"x": X},
        constants={"p": np.array([0, 0, -1, -1, 0, 0, 1, 1])},
    )
    refused(model, tmp_path, "pads by its own values and cuts at once")
