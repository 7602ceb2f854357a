"""Operators one by one: what onnxruntime computes, and which layers they become."""

import numpy as np
import pytest

from tests.onnx.graphs import agree, draw, graph, node

X = (2, 3, 8, 9)
UNARY = {
    "Abs": ({}, ["AbsVal"]),
    "Elu": ({"alpha": 0.7}, ["ELU"]),
    "Exp": ({}, ["Exp"]),
    "HardSigmoid": ({"alpha": 0.3}, ["Power", "Clip"]),
    "HardSwish": ({}, ["HardSwish"]),
    "LeakyRelu": ({"alpha": 0.2}, ["ReLU"]),
    "LogSoftmax": ({"axis": 1}, ["LogSoftmax"]),
    "Mish": ({}, ["BNLL", "TanH", "Eltwise"]),
    "Neg": ({}, ["Power"]),
    "Relu": ({}, ["ReLU"]),
    "Selu": ({}, ["ELU", "Power"]),
    "Sigmoid": ({}, ["Sigmoid"]),
    "Softmax": ({"axis": -1}, ["Softmax"]),
    "Softplus": ({}, ["BNLL"]),
    "Softsign": ({}, ["AbsVal", "Power", "Eltwise"]),
    "Tanh": ({}, ["TanH"]),
    "ThresholdedRelu": ({"alpha": 0.4}, ["Threshold", "Eltwise"]),
}


@pytest.mark.parametrize("op", UNARY)
def test_values_one_by_one(op, tmp_path):
    attributes, types = UNARY[op]
    opset = 18 if op == "Mish" else 17
    model = graph([node(op, "x", **attributes)], {"x": ["n", *X[1:]]}, opset=opset)
    agree(model, {"x": draw(*X)}, tmp_path, types=types)


@pytest.mark.parametrize("opset", [11, 17])
def test_logarithms_of_what_lies_far_apart(opset, tmp_path):
    model = graph([node("LogSoftmax", "x", axis=1)], {"x": ["n", *X[1:]]}, opset=opset)
    agree(model, {"x": draw(*X) * np.float32(300)}, tmp_path)


@pytest.mark.parametrize(("approximate", "opset"), [("none", 20), ("tanh", 20)])
def test_gelu(approximate, opset, tmp_path):
    model = graph([node("Gelu", "x", approximate=approximate)], {"x": X}, opset=opset)
    agree(model, {"x": draw(*X)}, tmp_path, types=["GELU"])


def test_softmax_of_old_opsets_joins_axes(tmp_path):
    model = graph([node("Softmax", "x", axis=1)], {"x": ["n", *X[1:]]}, opset=11)
    agree(model, {"x": draw(*X)}, tmp_path)


CONSTANTS = {
    "scalar": (np.float32(1.7), "Power", "Power"),
    "channels": (draw(3, 1, 1), "Bias", "Scale"),
    "places": (draw(8, 9), "Bias", "Scale"),
    "spread": (draw(1, 3, 1, 9), "Bias", "Scale"),
}


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("first", [True, False])
def test_arithmetic_with_a_constant(op, name, first, tmp_path):
    value, added, scaled = CONSTANTS[name]
    inputs = "c x" if first else "x c"
    x = np.abs(draw(*X)) + 0.5
    model = graph(
        [node(op, inputs)], {"x": ["n", *X[1:]]}, constants={"c": np.float32(np.abs(value) + 1)}
    )
    types = agree(model, {"x": x}, tmp_path)
    assert types[-1] == (added if op in ("Add", "Sub") else scaled)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 4, 5), (2, 3, 4, 5)),
        ((2, 3, 4, 5), (2, 3, 1, 1)),
        ((2, 3, 1, 1), (2, 3, 4, 5)),
        ((2, 3, 4, 5), (2, 1, 4, 5)),
        ((2, 3, 4, 1), (2, 3, 1, 5)),
    ],
)
def test_arithmetic_of_two_blobs(op, a, b, tmp_path):
    model = graph([node(op, "a b")], {"a": ["n", *a[1:]], "b": ["n", *b[1:]]})
    feeds = {"a": draw(*a), "b": np.abs(draw(*b, seed=1)) + 0.5}
    agree(model, feeds, tmp_path)


def test_swish_is_one_layer(tmp_path):
    nodes = [node("Sigmoid", "x", "s"), node("Mul", "x s")]
    agree(graph(nodes, {"x": X}), {"x": draw(*X)}, tmp_path, types=["Swish"])


WINDOWS = {
    "plain": {},
    "stride": {"strides": [2, 3]},
    "even pads": {"pads": [1, 2, 1, 2]},
    "uneven pads": {"pads": [0, 1, 2, 1]},
    "same upper": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    "same lower": {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    "dilation": {"dilations": [2, 2], "pads": [2, 2, 2, 2]},
}


@pytest.mark.parametrize("name", WINDOWS)
def test_convolution(name, tmp_path):
    constants = {"w": draw(4, 3, 3, 3), "b": draw(4)}
    model = graph([node("Conv", "x w b", **WINDOWS[name])], {"x": ["n", *X[1:]]}, (), constants)
    model.graph.output.add().name = "y"
    agree(model, {"x": draw(*X)}, tmp_path, types=["Convolution"])


def test_padding_before_a_convolution_is_the_convolutions(tmp_path):
    pads = np.array([0, 0, 1, 2, 0, 0, 2, 1])
    nodes = [node("Pad", "x p", "m"), node("Conv", "m w")]
    model = graph(nodes, {"x": X}, constants={"p": pads, "w": draw(4, 3, 3, 3)})
    agree(model, {"x": draw(*X)}, tmp_path, types=["Convolution"])


POOLS = {
    "plain": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    "pads": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "pads, ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    "same": {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "larger": {"kernel_shape": [9, 3], "strides": [2, 2]},
    "one side": {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [0, 0, 1, 1]},
}


@pytest.mark.parametrize("name", POOLS)
def test_max_pooling(name, tmp_path):
    model = graph([node("MaxPool", "x", **POOLS[name])], {"x": ["n", *X[1:]]})
    types = agree(model, {"x": draw(*X)}, tmp_path)
    assert types == (["Gather", "Gather", "Pooling"] if name == "one side" else ["Pooling"])


def test_normalisations(tmp_path):
    nodes = [
        node("BatchNormalization", "x s b m v", "a", epsilon=1e-3),
        node("InstanceNormalization", "x s b", "c"),
        node("LRN", "x", "d", size=3, alpha=0.3, beta=0.6, bias=2.0),
        node("LayerNormalization", "x w u", "e", axis=2),
        node("LpNormalization", "x", "f", axis=1),
    ]
    constants = {
        "s": draw(3),
        "b": draw(3, seed=1),
        "m": draw(3, seed=2),
        "v": np.abs(draw(3)) + 0.1,
        "w": draw(8, 9),
        "u": draw(8, 9, seed=1),
    }
    model = graph(nodes, {"x": ["n", *X[1:]]}, "acdef", constants)
    agree(model, {"x": draw(*X)}, tmp_path)


def test_linear_layers(tmp_path):
    nodes = [
        node("Gemm", "x w b", "a", transB=1, alpha=0.5, beta=2.0),
        node("MatMul", "x v", "m"),
        node("Add", "m c", "d"),
        node("MatMul", "z v", "e"),
    ]
    constants = {"w": draw(4, 6), "b": draw(4), "v": draw(6, 5), "c": draw(5)}
    model = graph(nodes, {"x": ["n", 6], "z": ["n", 2, 6]}, "ade", constants)
    types = agree(model, {"x": draw(3, 6), "z": draw(3, 2, 6)}, tmp_path)
    assert types == ["InnerProduct"] * 3


def test_pieces(tmp_path):
    nodes = [
        node("Split", "x p", "a b c", axis=1),
        node("Slice", "x s e t", "d"),
        node("Slice", "x f g u h", "i"),
        node("Gather", "x k", "j", axis=2),
        node("Gather", "x o", "l", axis=3),
        node("Concat", "a c", "m", axis=1),
        node("Tile", "x r", "q"),
        node("SpaceToDepth", "x", "v", blocksize=2),
        node("DepthToSpace", "x", "w", blocksize=2),
        node("DepthToSpace", "x", "z", blocksize=2, mode="CRD"),
    ]
    constants = {
        "p": np.array([1, 2, 5]),
        "s": np.array([1]),
        "e": np.array([-1]),
        "t": np.array([2]),
        "f": np.array([-1]),
        "g": np.array([-100]),
        "u": np.array([3]),
        "h": np.array([-2]),
        "k": np.array(2),
        "o": np.array([[0, 3], [1, 1]]),
        "r": np.array([1, 2, 1, 3]),
    }
    model = graph(nodes, {"x": ["n", 8, 4, 6]}, "dijlmqvwz", constants)
    agree(model, {"x": draw(2, 8, 4, 6)}, tmp_path)


def test_transposes_that_cancel_leave_no_layer(tmp_path):
    nodes = [
        node("Transpose", "x", "a", perm=[0, 2, 3, 1]),
        node("Relu", "a", "b"),
        node("Transpose", "b", "c", perm=[0, 3, 1, 2]),
        node("Conv", "c w"),
    ]
    model = graph(nodes, {"x": X}, constants={"w": draw(4, 3, 3, 3)})
    agree(model, {"x": draw(*X)}, tmp_path, types=["ReLU", "Convolution"])


def test_repeated_pixels_are_stock(tmp_path):
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    constants = {"s": np.array([1, 3, 10, 18])}
    model = graph(
        [node("Resize", "x - - s", **attributes)], {"x": [1, 3, 5, 6]}, constants=constants
    )
    agree(model, {"x": draw(1, 3, 5, 6)}, tmp_path, types=["Deconvolution"])


def test_embedding(tmp_path):
    from onnx import TensorProto

    model = graph(
        [node("Gather", "t i", "e"), node("ReduceMean", "e", axes=[1])],
        {"i": ["n", 4]},
        constants={"t": draw(10, 3)},
        types={"i": TensorProto.INT64},
    )
    agree(model, {"i": np.array([[1, 2, 3, 9], [0, 0, 5, 7]])}, tmp_path)


@pytest.mark.parametrize(("auto_pad", "adds"), [("NOTSET", 0), ("NOTSET", 1), ("SAME_UPPER", 0)])
@pytest.mark.parametrize("goal", [[10, 8], [8, 6], [9, 7]])
def test_transposed_convolutions_with_a_given_size(auto_pad, adds, goal, tmp_path):
    """What is cut off and cannot be halved is cut off before; what is missing is added behind."""
    made = {"output_padding": [adds, adds], "output_shape": goal, "strides": [3, 2]}
    model = graph(
        [node("ConvTranspose", "x w", auto_pad=auto_pad, **made)],
        {"x": ["n", 1, 3, 3]},
        constants={"w": draw(1, 2, 3, 3)},
    )
    agree(model, {"x": draw(2, 1, 3, 3)}, tmp_path)


def test_rows_of_zeros_stay_zeros_where_they_are_normalised(tmp_path):
    x = draw(2, 3, 4)
    x[:, :, 1] = 0
    model = graph([node("LpNormalization", "x", axis=1)], {"x": ["n", 3, 4]})
    agree(model, {"x": x}, tmp_path)


def test_rows_without_anything_to_attend_to(tmp_path):
    """Masks of infinite numbers: what they cover wholly becomes 0, as exporters write it."""
    nodes = [
        node("Greater", "m half", "b"),
        node("Where", "b zero never", "c"),
        node("Add", "x c", "d"),
        node("Softmax", "d", "e"),
        node("ReduceMax", "c", "f", axes=[-1]),
        node("Equal", "f never", "g"),
        node("Where", "g zero e"),
    ]
    constants = {
        "half": np.float32(0.5),
        "zero": np.zeros(1, np.float32),
        "never": np.full(1, -np.inf, np.float32),
    }
    model = graph(nodes, {"x": ["n", 3, 4], "m": ["n", 3, 4]}, constants=constants)
    mask = (draw(2, 3, 4, seed=1) > 0).astype(np.float32)
    mask[:, 1] = 0
    agree(model, {"x": draw(2, 3, 4), "m": mask}, tmp_path)
