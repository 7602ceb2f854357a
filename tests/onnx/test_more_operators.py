"""Operators, and forms of graphs, that other exporters than PyTorch's write."""

import numpy as np
import pytest

from tests.onnx.graphs import agree, draw, graph, helper, node, onnx, read_model, refused, save

X = ["n", 3, 4]
INT, BOOL, FLOAT = onnx.TensorProto.INT64, onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT


@pytest.mark.parametrize("op", ["Floor", "Ceil", "Round", "Sin", "Cos"])
def test_functions(op, tmp_path):
    x = np.concatenate([4 * draw(1, 3, 4), np.arange(-6, 6).reshape(1, 3, 4) / 2])
    agree(graph([node(op, "x")], {"x": X}), {"x": x.astype(np.float32)}, tmp_path, types=["Math"])


def test_tokens_as_floats(tmp_path):
    """As Keras writes them: the same whole numbers are looked up and compared."""
    nodes = [
        node("Cast", "x", "i", to=INT),
        node("Gather", "table i", "e"),
        node("Equal", "i zero", "none"),
        node("Not", "none", "m"),
        node("Cast", "m", "f", to=FLOAT),
        node("Unsqueeze", "f last", "w"),
        node("Mul", "e w"),
    ]
    constants = {"table": draw(9, 5), "zero": np.array(0), "last": np.array([-1])}
    x = np.array([[0, 3.7, 0.9, 8], [2, 0, 1, 7.5]], np.float32)
    agree(graph(nodes, {"x": ["n", 4]}, constants=constants), {"x": x}, tmp_path)


@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_cumulative_sums(exclusive, reverse, tmp_path):
    made = node("CumSum", "x axis", exclusive=exclusive, reverse=reverse)
    model = graph([made], {"x": X}, constants={"axis": np.array(-1)})
    agree(model, {"x": draw(2, 3, 4)}, tmp_path, types=["CumSum"])
    refused(graph([made], {"x": X}, constants={"axis": np.array(0)}), tmp_path, "over the records")


@pytest.mark.parametrize("axis", [1, 2])
def test_places_in_a_blob(axis, tmp_path):
    model = graph([node("GatherElements", "x i", axis=axis)], {"x": X, "i": X}, types={"i": INT})
    places = np.random.default_rng(1).integers(-3, 3, (2, 3, 4))
    agree(model, {"x": draw(2, 3, 4), "i": places}, tmp_path)


def test_a_quotient_that_is_looked_at_closely(tmp_path):
    """x / x is 1 to the last digit where somebody rounds down or looks for the first of equal ones;
    49 / 49 is not, as 49 times what 1 / 49 is in float32."""
    x = np.abs(draw(64, 3, 4)) + np.float32(0.5)
    nodes = [node("Div", "x x", "d"), node("Relu", "d", "r"), node("ArgMax", "r", "m", axis=2)]
    model = graph([*nodes, node("Cast", "m", to=FLOAT)], {"x": X})
    assert "Div" in agree(model, {"x": x}, tmp_path)
    nodes = [node("Floor", "x", "f"), node("Div", "f c", "d"), node("Cast", "d", "i", to=INT)]
    model = graph([*nodes, node("Cast", "i", to=FLOAT)], {"x": X}, constants={"c": np.float32(49)})
    agree(model, {"x": (49 * np.arange(24) + 0.5).reshape(2, 3, 4).astype(np.float32)}, tmp_path)
    model = graph([node("Div", "x x", "d"), node("Exp", "d")], {"x": X})
    assert "Div" not in agree(model, {"x": x}, tmp_path)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("first", [False, True])
def test_recurrent_layers_with_relu(direction, first, tmp_path):
    ways = 1 + (direction == "bidirectional")
    constants = {"w": draw(ways, 5, 4), "r": draw(ways, 5, 5, seed=1) / 3, "b": draw(ways, 10)}
    made = node(
        "RNN",
        "t w r b - u" if first else "t w r b",
        "y last",
        hidden_size=5,
        direction=direction,
        activations=["Relu"] * ways,
    )
    nodes = [node("Transpose", "x", "t", perm=[1, 0, 2]), made]
    shapes = {"x": ["n", 3, 4]}
    feeds = {"x": draw(2, 3, 4)}
    if first:
        nodes.insert(0, node("Transpose", "h", "u", perm=[1, 0, 2]))
        shapes["h"], feeds["h"] = ["n", ways, 5], draw(2, ways, 5, seed=2)
    agree(graph(nodes, shapes, ("y", "last"), constants), feeds, tmp_path)


def test_a_clip_whose_ends_cross(tmp_path):
    constants = {"low": np.float32(2), "high": np.float32(1)}
    model = graph([node("Clip", "x low high")], {"x": X}, constants=constants)
    agree(model, {"x": draw(2, 3, 4)}, tmp_path)


def test_the_sign_of_a_vector_of_one(tmp_path):
    nodes = [node("LpNormalization", "x", "l", axis=1), node("ArgMax", "l", "m", axis=2)]
    model = graph([*nodes, node("Cast", "m", to=FLOAT)], {"x": ["n", 1, 4]})
    agree(model, {"x": np.abs(draw(64, 1, 4)) + np.float32(0.5)}, tmp_path)


def test_backwards_from_before_the_first(tmp_path):
    names = {"a": -9, "b": -(2**63), "c": 2, "d": -2}
    constants = {name: np.array([value]) for name, value in names.items()}
    model = graph([node("Slice", "x a b c d")], {"x": X}, constants=constants)
    agree(model, {"x": draw(2, 3, 4)}, tmp_path)


def test_logarithms_of_large_sums(tmp_path):
    model = graph([node("ReduceLogSumExp", "x", axes=[1, 2], keepdims=0)], {"x": X})
    agree(model, {"x": 1000 * draw(5, 3, 4)}, tmp_path)
    rows = graph([node("ReduceLogSumExp", "x", axes=[1])], {"x": X})
    agree(rows, {"x": draw(5, 3, 4) - 1000}, tmp_path)


def test_pieces_of_which_nothing_is_left(tmp_path):
    nodes = [node("Slice", "x a a c", "s"), node("Concat", "s x e", axis=1)]
    constants = {"a": np.array([2]), "c": np.array([1]), "e": np.zeros((1, 0, 4), np.float32)}
    model = graph(nodes, {"x": [1, 3, 4]}, constants=constants)
    agree(model, {"x": draw(1, 3, 4)}, tmp_path)
    model = graph([node("Slice", "x a a c")], {"x": X}, constants=constants)
    refused(model, tmp_path, r"a constant of the shape \[N, 0, 4\] is empty")


def test_what_is_no_number(tmp_path):
    nodes = [node("Log", "x", "l"), node("IsNaN", "l", "b"), node("Where", "b zero l")]
    model = graph(nodes, {"x": X}, constants={"zero": np.float32(0)})
    agree(model, {"x": draw(2, 3, 4)}, tmp_path)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(2, 3, 2), (2, 1, 1), (1.5, 2, 0.5)])
def test_volumes_of_other_sizes(mode, scales, tmp_path):
    made = node(
        "Resize", "x - s", mode=mode, coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )  # fmt: skip
    constants = {"s": np.array([1, 1, *scales], np.float32)}
    model = graph([made], {"x": ["n", 2, 4, 3, 4]}, constants=constants)
    agree(model, {"x": draw(2, 2, 4, 3, 4)}, tmp_path)


def test_one_blob_joined_to_nothing_is_not_written_over(tmp_path):
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("Concat", "t", "c", axis=2)]
    agree(graph([*nodes, node("Min", "c t")], {"x": X}), {"x": draw(2, 3, 4)}, tmp_path)


LOOKS = [
    (mode, padding, corners)
    for mode in ("nearest", "linear", "cubic")
    for padding in ("zeros", "border", "reflection")
    for corners in (0, 1)
]


@pytest.mark.parametrize(("mode", "padding", "corners"), LOOKS)
def test_places_in_images(mode, padding, corners, tmp_path):
    """Names of opset 20 and of opset 16; a grid for all records."""
    how = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    inputs = {"x": draw(2, 3, 5, 4), "g": 1.5 * draw(2, 3, 6, 2, seed=1)}
    shapes = {"x": ["n", 3, 5, 4], "g": ["n", 3, 6, 2]}
    agree(graph([node("GridSample", "x g", **how)], shapes, opset=20), inputs, tmp_path)
    how["mode"] = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    agree(graph([node("GridSample", "x g", **how)], shapes, opset=16), inputs, tmp_path)


def test_places_that_are_the_same_for_each_record(tmp_path):
    nodes = [node("Shape", "x", "s"), node("Slice", "s zero one", "n")]
    nodes += [node("Concat", "n rest", "sizes", axis=0), node("Expand", "grid sizes", "g")]
    constants = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "rest": np.array([2, 3, 2]),
        "grid": draw(1, 2, 3, 2),
    }
    model = graph([*nodes, node("GridSample", "x g")], {"x": ["n", 3, 5, 4]}, constants=constants)
    agree(model, {"x": draw(3, 3, 5, 4)}, tmp_path)


def test_places_in_volumes_are_refused(tmp_path):
    shapes = {"x": ["n", 1, 2, 3, 4], "g": ["n", 2, 2, 2, 3]}
    model = graph([node("GridSample", "x g")], shapes, opset=20)
    refused(model, tmp_path, r"\(GridSample\): it looks up along 3 axes; a layer takes 2")


def test_image_scaler(tmp_path):
    """onnxruntime knows it no more: of opset 1, by its description."""
    made = node("ImageScaler", "x", scale=0.5, bias=[1.0, 2.0, 3.0])
    path = save(graph([made], {"x": [1, 3, 2, 2]}), tmp_path)
    layers = read_model(path).net.layer
    assert [one.type for one in layers] == ["Input", "Power", "Bias"]
    assert layers[1].power_param.scale == 0.5


def test_nodes_in_any_order(tmp_path):
    nodes = [node("Relu", "b"), node("Sigmoid", "a", "b"), node("Tanh", "x", "a")]
    path = save(graph(nodes, {"x": X}), tmp_path)
    types = [one.type for one in read_model(path).net.layer]
    assert types == ["Input", "TanH", "Sigmoid", "ReLU"]


def test_an_open_size_of_less_than_nothing(tmp_path):
    model = graph([node("Relu", "x")], {"x": X})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    path = save(model, tmp_path)
    assert list(read_model(path, batch=7).net.layer[0].input_param.shape[0].dim) == [7, 3, 4]


def branches(*nodes, condition):
    """An If of a Relu, with a constant of its own, or else these nodes."""
    shift = onnx.numpy_helper.from_array(np.float32(2), "shift")
    value = helper.make_tensor_value_info("then", FLOAT, None)
    first = helper.make_graph(
        [node("Add", "h shift", "moved"), node("Relu", "moved", "then")], "a", [], [value], [shift]
    )
    other = helper.make_tensor_value_info("else", FLOAT, None)
    second = helper.make_graph(list(nodes), "b", [], [other])
    return node("If", condition, then_branch=first, else_branch=second)


@pytest.mark.parametrize("true", [False, True])
def test_a_branch_that_is_known(true, tmp_path):
    nodes = [node("Sigmoid", "x", "h"), branches(node("Neg", "h", "else"), condition="c")]
    model = graph(nodes, {"x": X}, constants={"c": np.array(true)})
    types = ["Sigmoid", "Power", "ReLU"] if true else ["Sigmoid", "Power"]
    agree(model, {"x": draw(2, 3, 4)}, tmp_path, types=types)


def test_a_branch_that_a_shape_chooses(tmp_path):
    """As TorchScript exports squeeze(1)."""
    nodes = [
        node("Sigmoid", "x", "h"),
        node("Shape", "h", "s"),
        node("Gather", "s one", "d"),
        node("Equal", "d one", "c"),
        branches(node("Neg", "h", "else"), condition="c"),
    ]
    model = graph(nodes, {"x": X}, constants={"one": np.array(1)})
    agree(model, {"x": draw(2, 3, 4)}, tmp_path, types=["Sigmoid", "Power"])


def test_a_branch_without_what_it_reads(tmp_path):
    made = branches(node("Neg", "missing", "else"), condition="c")
    model = graph([node("Relu", "x", "h"), made], {"x": X}, constants={"c": np.array(False)})
    refused(model, tmp_path, "it reads 'missing', which nothing before it makes")


@pytest.mark.parametrize("second", ["Sigmoid", "Identity"])
def test_a_branch_that_reads_what_is_computed_twice(second, tmp_path):
    """One of the two is left out, and the branch reads the other."""
    source = "x" if second == "Sigmoid" else "first"
    nodes = [
        node("Sigmoid", "x", "first"),
        node(second, source, "h"),
        branches(node("Neg", "h", "else"), condition="c"),
        node("Add", "first y", "z"),
    ]
    constants = {"c": np.array(False)}
    model = graph(nodes, {"x": X}, outputs=("z",), constants=constants)
    agree(model, {"x": draw(2, 3, 4)}, tmp_path)
