"""Comparisons, the largest values, Einsum, places and whole numbers with a scale."""

import re

import numpy as np
import pytest

from tests.onnx.graphs import RUNTIME, agree, draw, graph, node, onnx, read_model, refused

X = (2, 3, 8, 9)
OPEN = ["n", *X[1:]]
WHOLE = np.round(2 * draw(*X))
"""Many equal values."""


@pytest.mark.parametrize("op", ["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"])
@pytest.mark.parametrize("other", ["number", "channels", "blob", "first"])
def test_comparisons(op, other, tmp_path):
    constants = {"c": np.float32(1)} if other != "channels" else {"c": np.round(draw(3, 1, 1))}
    inputs = {"number": "x c", "channels": "x c", "blob": "x z", "first": "c x"}[other]
    feeds = {"x": WHOLE, "z": np.round(2 * draw(*X, seed=1))}
    used = {name: feeds[name] for name in feeds if name in inputs.split()}
    nodes = [node(op, inputs, "b"), node("Cast", "b", to=1)]
    agree(graph(nodes, dict.fromkeys(used, OPEN), constants=constants), used, tmp_path)


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op, tmp_path):
    nodes = [
        node("Greater", "x c", "a"),
        node("Less", "x d", "b"),
        node(op, "a b", "e"),
        node("Not", "e", "f"),
        node("Cast", "f", to=1),
    ]
    constants = {"c": np.float32(0), "d": np.float32(1)}
    model = graph(nodes, {"x": OPEN}, constants=constants)
    agree(model, {"x": WHOLE}, tmp_path)


@pytest.mark.parametrize("kind", ["computed", "constant", "infinite"])
def test_where(kind, tmp_path):
    mask = draw(8, 9) > 0
    nodes = [node("Greater", "x zero", "m"), node("Sign", "x", "s")]
    nodes += [node("Where", "mask x s" if kind == "constant" else "m x s")]
    constants = {"zero": np.float32(0), "mask": mask}
    if kind == "infinite":
        nodes = [node("Where", "mask x low", "w"), node("Softmax", "w", axis=-1)]
        constants["low"] = np.float32(-np.inf)
    model = graph(nodes, {"x": OPEN}, constants=constants)
    agree(model, {"x": WHOLE}, tmp_path)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(("axis", "keep"), [(1, 1), (3, 0)])
def test_places_of_equal_values(op, last, axis, keep, tmp_path):
    attributes = {"axis": axis, "keepdims": keep, "select_last_index": last}
    nodes = [node(op, "x", "p", **attributes), node("Cast", "p", to=1)]
    agree(graph(nodes, {"x": OPEN}), {"x": WHOLE}, tmp_path)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("outputs", ["v", "p", "v p"])
def test_top_k(largest, outputs, tmp_path):
    nodes = [node("TopK", "x k", "v p", axis=2, largest=largest), node("Cast", "p", "f", to=1)]
    names = outputs.replace("p", "f").split()
    model = graph(nodes, {"x": OPEN}, names, {"k": np.array([3])})
    agree(model, {"x": WHOLE}, tmp_path)


EQUATIONS = {
    "bhid,bhjd->bhij": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "bid,bdj->bij": ((2, 3, 4), (2, 4, 5)),
    "bi,bj": ((2, 3), (2, 4)),
    "bij,bjk->bki": ((2, 3, 4), (2, 4, 5)),
    "bhwc,bhwd->bcd": ((2, 3, 4, 5), (2, 3, 4, 6)),
    "bij,bkl->bil": ((2, 3, 4), (2, 5, 6)),
}
WEIGHTED = {
    "nchw,cd->nhwd": ((2, 3, 4, 5), (3, 6)),
    "bij,ijk->bk": ((2, 3, 4), (3, 4, 5)),
    "bij,ik->bkj": ((2, 3, 4), (3, 5)),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_of_two_blobs(equation, tmp_path):
    a, b = EQUATIONS[equation]
    nodes = [node("Einsum", "a b", equation=equation)]
    model = graph(nodes, {"a": ["n", *a[1:]], "b": ["n", *b[1:]]})
    agree(model, {"a": draw(*a), "b": draw(*b, seed=1)}, tmp_path)


@pytest.mark.parametrize("equation", WEIGHTED)
@pytest.mark.parametrize("turned", [False, True])
def test_einsum_with_weights(equation, turned, tmp_path):
    a, b = WEIGHTED[equation]
    if turned:
        left, result = equation.split("->")
        equation = ",".join(reversed(left.split(","))) + "->" + result
    nodes = [node("Einsum", "w a" if turned else "a w", equation=equation)]
    model = graph(nodes, {"a": ["n", *a[1:]]}, constants={"w": draw(*b, seed=1)})
    types = agree(model, {"a": draw(*a)}, tmp_path)
    assert "InnerProduct" in types
    assert "MatMul" not in types


def test_einsum_of_one_value(tmp_path):
    nodes = [
        node("Einsum", "x", "a", equation="bchw->bhc"),
        node("Einsum", "x", "b", equation="bchw->bwhc"),
    ]
    agree(graph(nodes, {"x": OPEN}, "ab"), {"x": draw(*X)}, tmp_path)


def test_places_through_all_records(tmp_path):
    """What torch.export writes for as_strided: indices that are computed from the batch."""
    nodes = [
        node("Shape", "x", "s", start=0, end=1),
        node("Squeeze", "s", "n"),
        node("Range", "zero n one", "r"),
        node("Mul", "r six", "o"),
        node("Unsqueeze", "o last", "p"),
        node("Add", "p own", "places"),
        node("Reshape", "x flat", "f"),
        node("Gather", "f places"),
    ]
    constants = {
        "zero": np.array(0),
        "one": np.array(1),
        "six": np.array(6),
        "last": np.array([1]),
        "own": np.array([5, 0, 3]),
        "flat": np.array([-1]),
    }
    model = graph(nodes, {"x": ["n", 2, 3]}, constants=constants)
    agree(model, {"x": draw(4, 2, 3)}, tmp_path)


def test_gather_by_several_axes_and_by_computed_places(tmp_path):
    nodes = [
        node("Transpose", "x", "t", perm=[2, 3, 0, 1]),
        node("GatherND", "t places", "g"),
        node("Transpose", "g", "y", perm=[1, 2, 0]),
    ]
    constants = {"places": np.array([[0, 1], [7, -1], [3, 4]])}
    agree(graph(nodes, {"x": OPEN}, constants=constants), {"x": draw(*X)}, tmp_path)


def test_a_constant_cut_backwards_up_to_a_place(tmp_path):
    nodes = [node("Slice", "c first last axes back", "s"), node("Add", "x s")]
    constants = {
        "c": draw(6),
        "first": np.array([4]),
        "last": np.array([1]),
        "axes": np.array([0]),
        "back": np.array([-1]),
    }
    agree(graph(nodes, {"x": ["n", 3]}, constants=constants), {"x": draw(2, 3)}, tmp_path)


@pytest.mark.parametrize(
    ("made", "layers"),
    [
        (node("Gather", "x row", axis=2), ["Gather_y"]),
        (node("Gather", "x one", axis=2), ["Gather_y_taken", "silence", "Gather_y"]),
        (node("PRelu", "x slopes"), ["PRelu_y"]),
        (
            node("LayerNormalization", "x factors", axis=3),
            ["LayerNormalization_y_normalised", "LayerNormalization_y"],
        ),
    ],
    ids=["places", "place", "slopes", "normalised"],
)
def test_the_last_layer_of_a_node_has_its_name(made, layers, tmp_path):
    constants = {
        "row": np.array([1, 3]),
        "one": np.array(3),
        "slopes": draw(3, 1, 1),
        "factors": draw(9),
    }
    model = graph([made], {"x": OPEN}, constants=constants)
    agree(model, {"x": draw(*X)}, tmp_path)
    net = read_model(tmp_path / "model.onnx").net
    assert [one.name for one in net.layer if one.type != "Input"] == layers


def test_rows_that_grow_along_the_one_axis_they_have(tmp_path):
    for inputs, given in (("x - s", np.float32([1, 1, 2])), ("x - - s", np.array([2, 3, 12]))):
        made = node("Resize", inputs, mode="linear")
        model = graph([made], {"x": [2, 3, 6]}, constants={"s": given})
        agree(model, {"x": draw(2, 3, 6)}, tmp_path)


def test_records_picked_by_another_input(tmp_path):
    kinds = {"i": onnx.TensorProto.INT64}
    model = graph([node("Gather", "x i", axis=0)], {"x": [4, 3], "i": [5]}, types=kinds)
    feeds = {"x": draw(4, 3), "i": np.array([3, 0, 0, 2, 1])}
    agree(model, feeds, tmp_path, types=["BatchReindex"])


def test_regions(tmp_path):
    made = node("MaxRoiPool", "x r", pooled_shape=[2, 3], spatial_scale=0.5)
    regions = np.array([[0, 0, 0, 9, 9], [1, 2, 4, 12, 15], [0, 3, 3, 8, 14]], np.float32)
    model = graph([made], {"x": [2, 3, 8, 9], "r": [3, 5]})
    agree(model, {"x": draw(*X), "r": regions}, tmp_path, types=["ROIPooling"])


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 0, 1]])
def test_pooling_over_three_axes(op, pads, tmp_path):
    made = node(op, "x", kernel_shape=[2, 3, 3], strides=[2, 1, 2], pads=pads)
    model = graph([made], {"x": ["n", 3, 4, 6, 7]})
    agree(model, {"x": draw(2, 3, 4, 6, 7)}, tmp_path)


def test_root_mean_square_normalisation(tmp_path):
    made = node("RMSNormalization", "x s", axis=-1, epsilon=1e-3)
    model = graph([made], {"x": ["n", 4, 6]}, constants={"s": draw(6)}, opset=23)
    model.ir_version = 10
    if RUNTIME < (1, 23):
        pytest.skip("this onnxruntime does not know opset 23")
    agree(model, {"x": draw(2, 4, 6)}, tmp_path)


def test_what_is_done_with_constants(tmp_path):
    """Masks and tables that exporters compute in the graph."""
    nodes = [
        node("ScatterND", "zeros at ones", "a"),
        node("Trilu", "table one", "b"),
        node("CumSum", "table zero", "c"),
        node("GatherND", "table at", "d"),
        node("GatherElements", "table rows", "e", axis=1),
        node("Pad", "table pads", "f"),
        node("Sum", "a b c", "g"),
        node("ReduceL2", "e", "h", axes=[1], keepdims=1),
        node("Add", "g h", "i"),
        node("Slice", "f first last", "j"),
        node("Add", "i j", "k"),
        node("Add", "x k", "l"),
        node("ReduceSum", "d all", "m", keepdims=0),
        node("Mul", "l m"),
    ]
    constants = {
        "zeros": np.zeros((3, 3), np.float32),
        "table": draw(3, 3),
        "at": np.array([[0, 1], [2, 2]]),
        "ones": np.ones(2, np.float32),
        "rows": np.array([[0, 2], [1, 1], [2, 0]]),
        "one": np.array(1),
        "zero": np.array(0),
        "pads": np.array([1, 0, 0, 1]),
        "first": np.array([0, 1]),
        "last": np.array([3, 4]),
        "all": np.array([0]),
    }
    model = graph(nodes, {"x": ["n", 3, 3]}, constants=constants)
    agree(model, {"x": draw(2, 3, 3)}, tmp_path, types=["Bias", "Power"])


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([node("QuantizeLinear", "x s z")], "whole numbers are computed with"),
        ([node("Einsum", "x", equation="...i")], "its equation is '...i'"),
        ([node("Einsum", "x", equation="bbhw->bhw")], "'bbhw' does not name each axis of input 0"),
        ([node("Einsum", "x", equation="bchw->chw")], "it adds up the records"),
        ([node("TopK", "x k", "y p", axis=1)], "it takes 9 of 3 values"),
        ([node("TopK", "x k", "y p", axis=0)], "it compares the records"),
        ([node("GatherND", "x at")], "it picks places by record"),
        ([node("GatherND", "x nowhere")], "it picks places by record"),
        ([node("Split", "x", "y u", axis=0)], "it splits the records"),
        ([node("NonMaxSuppression", "x x")], "how much comes out depends on the values"),
        ([node("ConvInteger", "x x")], "it computes with whole numbers"),
    ],
)
def test_refusals(nodes, says, tmp_path):
    constants = {
        "s": np.float32(0.1),
        "z": np.int8(0),
        "k": np.array([9]),
        "at": np.array([[0, 1]]),
        "nowhere": np.zeros((2, 0), np.int64),
    }
    refused(graph(nodes, {"x": OPEN}, constants=constants), tmp_path, re.escape(says))
