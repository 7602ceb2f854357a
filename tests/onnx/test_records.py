"""Models that leave the number of records open: what depends on it is right for any, or refused."""

import numpy as np
import pytest

from sparknet.errors import FileError
from tests.onnx.graphs import agree, draw, graph, node, onnx, read_model

X = ["n", 3, 4]


def refused(model, folder, says, **options):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(FileError, match=says) as caught:
        read_model(path, **options)
    said = str(caught.value).replace(str(folder), "")
    assert not any(str(number) in said for number in (101, 103, 107, 303))


SIZE = [
    node("Shape", "x", "s", start=0, end=1),
    node("Squeeze", "s", "n"),
    node("Cast", "n", "f", to=1),
]


def test_values_divided_by_how_many_records_there_are(tmp_path):
    model = graph([*SIZE, node("Div", "x f")], {"x": X})
    says = r"node 'Div_y' \(Div\): it computes with the number of records.*give the input's"
    refused(model, tmp_path, says)
    fixed = graph([*SIZE, node("Div", "x f")], {"x": [5, 3, 4]})
    agree(fixed, {"x": draw(5, 3, 4)}, tmp_path, types=["Power"])
    shapes = {"x": [5, 3, 4]}
    power = read_model(tmp_path / "model.onnx", shapes=shapes).net.layer[-1].power_param
    assert power.scale == pytest.approx(0.2)


@pytest.mark.parametrize("op", ["Shape", "Size"])
def test_shapes_as_results(op, tmp_path):
    model = graph([node(op, "x", "s"), node("Cast", "s", to=1)], {"x": X})
    refused(model, tmp_path, "it computes with the number of records")


@pytest.mark.parametrize(
    ("op", "number"),
    [("Less", 7), ("GreaterOrEqual", 2), ("Equal", 64), ("Equal", 1), ("Max", 5), ("Min", 512)],
)
def test_comparisons_that_turn_at_some_number(op, number, tmp_path):
    nodes = [*SIZE, node(op, "n c", "t"), node("Cast", "t", "u", to=1), node("Mul", "x u")]
    model = graph(nodes, {"x": X}, constants={"c": np.array(number)})
    refused(model, tmp_path, "computes with the number of records")


@pytest.mark.parametrize(("op", "number"), [("Less", 0), ("GreaterOrEqual", 1), ("Equal", -1)])
def test_comparisons_that_never_turn(op, number, tmp_path):
    nodes = [*SIZE, node(op, "n c", "t"), node("Cast", "t", "u", to=1), node("Mul", "x u")]
    model = graph(nodes, {"x": X}, constants={"c": np.array(number)})
    agree(model, {"x": draw(5, 3, 4)}, tmp_path)


def test_ranges_over_the_records(tmp_path):
    nodes = [*SIZE, node("Range", "zero n one", "r"), node("Cast", "r", "t", to=1)]
    nodes += [node("Unsqueeze", "t last", "u"), node("Add", "x u")]
    constants = {"zero": np.array(0), "one": np.array(1), "last": np.array([1])}
    refused(graph(nodes, {"x": ["n", 3]}, constants=constants), tmp_path, "the number of records")


@pytest.mark.parametrize("end", [2**63 - 1, 2**31 - 1, 2**40])
def test_the_last_of_the_sizes(end, tmp_path):
    """As PyTorch writes `q.shape[-1]`, of which an attention without its kernel takes the root."""
    constants = {"a": np.array([-1]), "b": np.array([end])}
    nodes = [node("Shape", "x", "s"), node("Slice", "s a b", "width")]
    nodes += [node("Cast", "width", "f", to=1), node("Sqrt", "f", "root"), node("Div", "x root")]
    agree(graph(nodes, {"x": X}, constants=constants), {"x": draw(5, 3, 4)}, tmp_path)


def test_numbers_without_end_that_do_not_change(tmp_path):
    """As the logarithm of the distance 0, in WavLM's positions."""
    constants = {"d": np.array([0, 1, 2, 3], np.float32), "low": np.array(-1)}
    nodes = [
        *SIZE,
        node("Mul", "f zero", "none"),
        node("Add", "d none", "e"),
        node("Log", "e", "l"),
    ]
    nodes += [node("Cast", "l", "i", to=7), node("Max", "i low", "m"), node("Cast", "m", "w", to=1)]
    nodes += [node("Add", "x w")]
    constants["zero"] = np.array(0, np.float32)
    agree(graph(nodes, {"x": X}, constants=constants), {"x": draw(5, 3, 4)}, tmp_path)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (0, 200), (1, 2**40), (0, -1), (-4, 2**40)])
def test_pieces_of_the_records(start, end, tmp_path):
    constants = {"a": np.array([start]), "b": np.array([end]), "c": np.array([0])}
    model = graph([node("Slice", "x a b c")], {"x": ["n", 2, 4]}, constants=constants)
    refused(model, tmp_path, r"\(Slice\): it takes some of the records")
    fixed = graph([node("Slice", "x a b c")], {"x": [8, 2, 4]}, constants=constants)
    agree(fixed, {"x": draw(8, 2, 4)}, tmp_path)


@pytest.mark.parametrize("op", ["ReduceMean", "Pow", "Sqrt"])
def test_what_does_not_grow_evenly(op, tmp_path):
    """The mean of the sizes 101, 6 and 6, in whole numbers, is that of 103, 6 and 6."""
    made = {
        "ReduceMean": [node("ReduceMean", "s", "m")],
        "Pow": [node("Pow", "s h", "m")],
        "Sqrt": [node("Cast", "s", "f", to=1), node("Sqrt", "f", "r"), node("Floor", "r", "m")],
    }[op]
    nodes = [node("Shape", "x", "s"), *made, node("Cast", "m", to=1)]
    constants = {"h": np.float32(0.5)}
    model = graph(nodes, {"x": ["n", 6, 6]}, constants=constants)
    refused(model, tmp_path, "the number of records")
    if op != "ReduceMean":  # of whole numbers, which not every ONNX Runtime has
        agree(graph(nodes, {"x": [5, 6, 6]}, constants=constants), {"x": draw(5, 6, 6)}, tmp_path)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            node("MaxPool", "t", kernel_shape=[2], strides=[3], ceil_mode=1),
            "its windows reach over",
        ),
        (node("Conv", "t w", auto_pad="SAME_UPPER"), "its windows reach over the records"),
        (node("GlobalAveragePool", "t"), "it pools over the records"),
        (node("LpNormalization", "t", axis=2), "it sums over the records"),
    ],
)
def test_windows_over_the_records(made, says, tmp_path):
    nodes = [node("Transpose", "x", "t", perm=[1, 2, 0]), made]
    constants = {"w": draw(2, 4, 2)} if made.op_type == "Conv" else {}
    refused(graph(nodes, {"x": X}, constants=constants), tmp_path, says)
    agree(graph(nodes, {"x": [5, 3, 4]}, constants=constants), {"x": draw(5, 3, 4)}, tmp_path)


def test_all_of_the_records(tmp_path):
    nodes = [*SIZE, node("Slice", "x a s c", "b"), node("Slice", "b a most c")]
    constants = {"a": np.array([0]), "c": np.array([0]), "most": np.array([2**63 - 1])}
    agree(
        graph(nodes, {"x": X}, constants=constants), {"x": draw(5, 3, 4)}, tmp_path, types=["Power"]
    )


def test_a_triangle_of_the_records(tmp_path):
    refused(graph([node("Trilu", "x")], {"x": ["n", 4]}), tmp_path, "a triangle of the records")
    agree(graph([node("Trilu", "x")], {"x": [5, 4]}), {"x": draw(5, 4)}, tmp_path)


def test_messages_count_records(tmp_path):
    constants = {"s": np.array([0, 5, -1])}
    model = graph([node("Reshape", "x s")], {"x": X}, constants=constants)
    refused(model, tmp_path, r"\[N, 3, 4\] does not become \[0, 5, -1\]")
    model = graph(
        [node("Concat", "x x", "a", axis=0), node("Einsum", "a", equation="ab->a")], {"x": X}
    )
    refused(model, tmp_path, "'ab' does not name each axis of input 0")
    nodes = [node("Tile", "x t", "a"), node("MatMul", "a w")]
    constants = {"t": np.array([2, 1, 1]), "w": draw(5, 2)}
    model = graph(nodes, {"x": X}, constants=constants)
    refused(model, tmp_path, r"weights \[5, 2\] do not fit the input \[2N, 3, 4\]")


def test_sizes_that_are_a_multiple_of_what_stands_for_the_records(tmp_path):
    """An axis of 202 that the model computes is not one of records."""
    constants = {
        "s": np.array([0, 202]),
        "a": np.array([1]),
        "b": np.array([5]),
        "c": np.array([1]),
    }
    nodes = [node("Reshape", "x s", "a1"), node("Slice", "a1 a b c")]
    model = graph(nodes, {"x": ["n", 2, 101]}, constants=constants)
    agree(model, {"x": draw(3, 2, 101)}, tmp_path)
    nodes = [node("Concat", "x x", "d", axis=1), node("Slice", "d a b c")]
    model = graph(nodes, {"x": ["n", 50]}, constants={**constants})
    agree(model, {"x": draw(3, 50)}, tmp_path)
    nodes = [node("Concat", "x x x z", "d", axis=1), node("Slice", "d a b c")]
    model = graph(nodes, {"x": ["n", 33], "z": ["n", 2]}, constants=constants)
    agree(model, {"x": draw(3, 33), "z": draw(3, 2)}, tmp_path)


def test_nothing_of_onnx_is_left_open(tmp_path):
    """A model of one number of records is read once, and computes with it."""
    model = graph([node("Shape", "x", "s"), node("Cast", "s", to=1)], {"x": [5, 3]})
    onnx.save(model, str(tmp_path / "model.onnx"))
    arrays = read_model(tmp_path / "model.onnx").arrays
    assert [one.tolist() for own in arrays for one in own] == [[5, 3]]
