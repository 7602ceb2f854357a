"""What cannot be converted is refused by one sentence, and nothing is written."""

import resource
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sparknet.cli import main
from sparknet.errors import FileError
from sparknet.graph.untrusted_budget import untrusted_numbers
from tests.onnx.graphs import draw, graph, helper, node, numpy_helper, onnx, read_model

X = ["n", 3, 8, 8]


def saved(folder, model):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def refused(folder, model, says, **options):
    with pytest.raises(FileError, match=says) as caught:
        read_model(saved(folder, model), **options)
    assert "\n" not in str(caught.value)


CASES = {
    "no layer": (node("NonZero", "x"), {}, r"node 'NonZero_y' \(NonZero\): no layer does this"),
    "dilated pool": (
        node("MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 2]),
        {},
        r"\(MaxPool\): pooling with dilation has no layer",
    ),
    "computed weights": (
        node("Conv", "x x"),
        {},
        r"\(Conv\): the weights must be constant; here the model computes it",
    ),
    "channels": (
        node("Conv", "x w"),
        {"w": draw(4, 2, 3, 3)},
        r"\(Conv\): weights \[4, 2, 3, 3\] do not fit 3 channels",
    ),
    "stride beyond the window": (
        node("ConvTranspose", "x w", auto_pad="SAME_LOWER", strides=[3, 2]),
        {"w": draw(3, 2, 1, 3)},
        r"\(ConvTranspose\): its auto_pad with a stride of \[3, 2\] and windows of \[1, 3\]",
    ),
    "records": (
        node("Slice", "x a b c"),
        {"a": np.array([0]), "b": np.array([1]), "c": np.array([0])},
        r"\(Slice\): it takes some of the records",
    ),
    "training": (
        node("BatchNormalization", "x s s s s", "y m v", training_mode=1),
        {"s": draw(3)},
        r"\(BatchNormalization\): it is exported for training",
    ),
    "axis": (node("Softmax", "x", axis=7), {}, r"\(Softmax\): axis 7 of 4 axes"),
    "shape": (
        node("Reshape", "x s"),
        {"s": np.array([0, 5, -1])},
        r"\(Reshape\): \[N, 3, 8, 8\] does not become \[0, 5, -1\]",
    ),
    "resize": (
        node("Resize", "x - s", antialias=1),
        {"s": np.array([1, 1, 0.5, 0.5], np.float32)},
        r"\(Resize\): it smooths before it shrinks",
    ),
    "other domain": (
        node("FusedConv", "x", domain="com.microsoft"),
        {},
        r"\(com.microsoft.FusedConv\): no layer does this",
    ),
    "unknown input": (node("Relu", "z"), {}, r"it reads 'z', which nothing before it makes"),
    "huge constant": (
        node("ConstantOfShape", "s", "c"),
        {"s": np.array([2**40])},
        r"\(ConstantOfShape\): its result has 1099511627776 numbers",
    ),
    "backwards to the largest number": (
        node("Slice", "x a b c d"),
        {name: np.array([n]) for name, n in zip("abcd", (1, 2**63 - 1, 2, -1), strict=True)},
        r"\(Slice\): it goes backwards to 9223372036854775807, which is the first value for some",
    ),
    "division of whole numbers": (
        node("Div", "i i", "c"),
        {},
        r"\(Div\): it divides whole numbers, and no layer rounds",
    ),
    "infinite numbers apart": (
        node("Equal", "x w", "c"),
        {"w": np.array([np.inf, -np.inf], np.float32)},
        r"\(Equal\): it compares with several infinite numbers",
    ),
    "huge copies": (
        node("Tile", "w s", "c"),
        {"w": draw(2), "s": np.array([2**50])},
        r"\(Tile\): its result has",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sentences(name, tmp_path):
    made, constants, says = CASES[name]
    nodes = [made]
    if made.output[0] != "y":
        nodes.append(node("Add", "x c"))
    inputs = {"x": X} | ({"i": X} if "i" in made.input else {})
    types = {"i": onnx.TensorProto.INT32}
    model = graph(nodes, inputs, constants=constants, opset=18, types=types)
    refused(tmp_path, model, says)


def test_graphs_in_nodes(tmp_path):
    inside = helper.make_graph([], "inside", [], [])
    model = graph([node("If", "x", then_branch=inside, else_branch=inside)], {"x": X})
    refused(tmp_path, model, r"\(If\): its condition depends on values, and a net has no branches")


@pytest.mark.parametrize("twice", [False, True])
def test_nodes_in_a_circle(twice, tmp_path):
    nodes = [node("Mul", "x b", "a"), node("Mul", "a a", "b")]
    says = r"\(Mul\): it reads 'b', which nothing before it makes"
    if twice:
        nodes = [node("Erf", "x", "a"), node("Mul", "a a", "b"), node("Mul", "b b", "a")]
        says = r"node 'Mul_a' \(Mul\): it makes 'a', which is there already"
    nodes += [node("Erf", "a", "c"), node("Mul", "c b")]
    refused(tmp_path, graph(nodes, {"x": X}), says)


@pytest.mark.parametrize("op", ["Where", "Div", "Sub", "Sqrt", "Erf", "Mul", "Gather"])
def test_nodes_without_inputs(op, tmp_path):
    nodes = [helper.make_node(op, [], ["a"], name="n"), node("Add", "x a")]
    refused(tmp_path, graph(nodes, {"x": X}), "malformed|is missing|index|argument|reduction")


def test_nodes_without_outputs(tmp_path):
    nodes = [helper.make_node("Identity", ["x"], [], name="i"), node("Relu", "x")]
    refused(tmp_path, graph(nodes, {"x": X}), "has a malformed node: list index out of range")


def test_enormous_inputs(tmp_path):
    refused(tmp_path, graph([node("Relu", "x")], {"x": ["n", 2**40]}), "more than|numbers|large")
    refused(tmp_path, graph([node("Relu", "x")], {"x": [1] * 33}), "has 33 axes; 32 is the most")


def test_small_files_of_large_nets(tmp_path):
    """What a file asks for is in proportion to it; a shape that a user gives is the user's."""
    picture = graph([node("Relu", "x")], {"x": [1, 3, 20000, 20000]})
    assert picture.ByteSize() < 120
    refused(tmp_path, picture, r"would hold 12000000[0-9]+ numbers; 10737[0-9]+ are the most")
    assert read_model(saved(tmp_path, picture), trusted=True).net.layer
    shapes = {"x": [1, 3, 20000, 20000]}
    assert read_model(saved(tmp_path, picture), shapes=shapes).net.layer
    refused(tmp_path, graph([node("Relu", "x")], {"x": [2**30 + 2**29]}), "would hold 16106")
    large = graph([node("Relu", "x")], {"x": ["n", 3, 2400, 2400]})  # one large photograph
    assert read_model(saved(tmp_path, large)).net.layer
    rows = graph([node("Relu", "x")], {"x": [2**30 + 2**29, 1]})
    most = untrusted_numbers() + 32 * rows.ByteSize()
    says = f"would hold 16106[0-9]+ numbers; {most} are the most: give the inputs' shapes"
    refused(tmp_path, rows, says)


def test_constants_count_together(tmp_path, monkeypatch):
    """A quarter of the memory that a net may have is for constants."""
    monkeypatch.setenv("SPARKNET_UNTRUSTED_MEMORY", "1m")
    constants = {"s": np.array([8000, 1])}
    kinds = [np.float32(1), np.float32(2), np.float64(3), np.int64(4)]
    nodes = [
        node("ConstantOfShape", "s", f"c{n}", value=numpy_helper.from_array(np.array([kind])))
        for n, kind in enumerate(kinds * 2)
    ]
    nodes += [node("Cast", f"c{n}", f"f{n}", to=1) for n in range(8)]
    nodes += [node("Sum", " ".join(["x", *(f"f{n}" for n in range(8))]))]
    model = graph(nodes, {"x": [8000, 1]}, constants=constants)
    refused(tmp_path, model, "the constants that the model computes are too large")
    monkeypatch.setenv("SPARKNET_UNTRUSTED_MEMORY", "4m")
    assert read_model(saved(tmp_path, model)).net.layer
    large = graph(
        [node("ConstantOfShape", "s", "c"), node("Add", "x c")],
        {"x": [1]},
        constants={"s": np.array([200_000])},
    )
    refused(tmp_path, large, "its result has 200000 numbers; 131072 is the most")


def test_views_of_constants_take_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARKNET_UNTRUSTED_MEMORY", "1m")
    constants = {"to": np.array([150, 150]), "row": np.array(7)}
    constants |= {f"c{n}": np.array([[n]]) for n in range(4)}
    nodes = [node("Expand", f"c{n} to", f"wide{n}") for n in range(4)]
    nodes += [node("Gather", f"wide{n} row", f"r{n}") for n in range(4)]
    nodes += [node("Cast", f"r{n}", f"f{n}", to=1) for n in range(4)]
    nodes += [node("Sum", "x f0 f1 f2 f3")]
    model = graph(nodes, {"x": ["n", 150]}, constants=constants)
    assert read_model(saved(tmp_path, model)).net.layer


def test_constants_that_are_too_large_for_several_numbers_of_records(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARKNET_UNTRUSTED_MEMORY", "1m")
    constants = {"c": np.ones((1, 9000), np.float32), "zero": np.array(0), "one": np.array([1])}
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n"),
        node("Unsqueeze", "n first", "n1"),
        node("Concat", "n1 one", "to", axis=0),
        node("Expand", "c to", "rows"),
        node("Add", "x rows"),
    ]
    model = graph(nodes, {"x": ["n", 9000]}, constants={**constants, "first": np.array([0])})
    says = (
        r"'Expand_rows' \(Expand\): its result has 9000N numbers; 32768 is the most, and the model "
        r"is read for several numbers of records: give the input's whole shape \(shapes=\)"
    )
    refused(tmp_path, model, says)


@pytest.mark.parametrize("op", ["Concat", "Resize", "MatMul", "Conv"])
def test_chains_that_grow(op, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARKNET_UNTRUSTED_MEMORY", "1g")
    names = ["x", *(f"a{number}" for number in range(17)), "y"]
    constants = {"s": np.array([1, 1, 2, 2], np.float32), "w": draw(3, 3, 1, 1)}
    shape = ["n", 3, 64, 64]
    inputs = {}
    what = "hold [0-9]+ numbers"
    if op == "Concat":
        nodes = [node(op, f"{a} {a}", b, axis=1) for a, b in pairwise(names)]
    elif op == "Resize":
        pairs = [
            (node(op, f"{a} - s", f"r{b}"), node("Relu", f"r{b}", b)) for a, b in pairwise(names)
        ]
        nodes = [one for pair in pairs for one in pair]
    elif op == "MatMul":
        what, shape = "take [0-9]+ multiplications a pass", [1, 1, 1000, 16000]
        inputs["t"] = [1, 1, 16000, 1000]
        names = [f"p{number}" for number in range(70)]
        # Products of one kind would be computed once.
        nodes = [node(op, "x t", name, number=place) for place, name in enumerate(names)]
        nodes.append(node("Sum", " ".join(names)))
    else:
        constants, shape = {"s": np.array([1, 1, 999, 999])}, [1, 1, 2200, 2200]
        what = "take [0-9]+ multiplications a pass"
        nodes = [node("ConstantOfShape", "s", "k"), node(op, "x k")]
    model = graph(nodes, {"x": shape, **inputs}, constants=constants)
    refused(tmp_path, model, f"for each record the layers up to this one would {what}; ")


def test_open_sizes(tmp_path):
    model = graph([node("Relu", "x")], {"x": [1, 3, "h", "w"], "z": ["n"]})
    refused(tmp_path, model, "input 'x' leaves 2 sizes open: give its shape")
    found = read_model(saved(tmp_path, model), shapes={"x": [2, 3, 4, 5]})
    assert list(found.net.layer[0].input_param.shape[0].dim) == [2, 3, 4, 5]
    refused(tmp_path, model, r"input 'x' has 4 axes: \[2, 3\]", shapes={"x": [2, 3]})


def test_old_opsets(tmp_path):
    refused(tmp_path, graph([node("Relu", "x")], {"x": X}, opset=6), "is of opset 6; 7 is the")


def test_files_that_are_no_models(tmp_path):
    for data in (b"", b"no model", b"\x08\x08" * 40):
        path = tmp_path / "model.onnx"
        path.write_bytes(data)
        with pytest.raises(FileError, match=r"is no ONNX model|has no outputs"):
            read_model(path)
    with pytest.raises(FileError, match="no such file"):
        read_model(tmp_path / "none.onnx")


def test_a_constant_smaller_than_its_shape(tmp_path):
    model = graph([node("Add", "x c")], {"x": X}, constants={"c": draw(3, 1, 1)})
    model.graph.initializer[0].dims[0] = 4
    refused(tmp_path, model, "constant 'c'")


def outside(location, offset=0, length=12):
    model = graph([node("Add", "x c")], {"x": X}, constants={"c": draw(3, 1, 1)})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return model


def test_constants_in_a_file_beside_the_model(tmp_path):
    numbers = draw(3)
    (tmp_path / "data").write_bytes(b"1234" + numbers.tobytes())
    found = read_model(saved(tmp_path, outside("data", 4)))
    np.testing.assert_array_equal(found.layer_arrays("Add_y")[0], numbers)


def test_constants_that_do_not_fit_into_memory(tmp_path):
    model = outside("data", 0, 2**36)
    model.graph.initializer[0].dims[:] = [2**34, 1, 1]
    with (tmp_path / "data").open("wb") as file:
        file.truncate(2**36)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**35, before[1]))
    try:
        says = "constant 'c' takes 68719476736 bytes, which do not fit into memory"
        refused(tmp_path, model, says)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize(
    ("location", "offset", "length", "says"),
    [
        ("/etc/passwd", 0, 12, "names '/etc/passwd', which is not in the model's folder"),
        ("../data", 0, 12, "names '../data', which is not in the model's folder"),
        ("", 0, 12, "names '', which is not in the model's folder"),
        ("none", 0, 12, "names 'none', which is not there"),
        ("link", 0, 12, "names 'link', a link out of the model's folder"),
        (".", 0, 12, "which is"),
        ("data", 5, 12, "reaches past the end of 'data'"),
        ("data", -4, 12, "reaches past the end of 'data'"),
        ("data", 2**62, 12, "reaches past the end of 'data'"),
        ("data", 0, 2**62, "takes 12 bytes; 4611686018427387904 are given"),
    ],
)
def test_constants_elsewhere(location, offset, length, says, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "data").write_bytes(bytes(16))
    (folder / "data").write_bytes(bytes(16))
    (folder / "link").symlink_to(tmp_path / "data")
    refused(folder, outside(location, offset, length), says)


def test_strict(tmp_path, capsys):
    model = saved(tmp_path, graph([node("Transpose", "x", perm=[0, 2, 3, 1])], {"x": X}))
    files = [str(tmp_path / name) for name in ("n.prototxt", "n.caffemodel")]
    assert main(["convert", "onnx", str(model), *files, "--strict"]) == 1
    said = capsys.readouterr().err
    assert "needs layers that stock Caffe lacks: Permute ('Output" in said or "Permute" in said
    assert not any(Path(name).exists() for name in files)
    assert main(["convert", "onnx", str(model), *files]) == 0
    assert "stock Caffe does not read the net: it lacks Permute" in capsys.readouterr().err
    assert (
        main(["convert", "onnx", str(model), *files, "--strict", "--allow", "Slice,Permute"]) == 0
    )
    assert main(["convert", "onnx", str(model), *files, "--allow", "Permute"]) == 2
    assert "--allow goes with --strict" in capsys.readouterr().err


def test_strict_names_each_layer_that_stock_caffe_lacks(tmp_path):
    nodes = [
        node("HardSwish", "x", "a"),
        node("Relu", "a", "b"),
        node("HardSwish", "b", "c"),
        node("Transpose", "c", perm=[0, 2, 3, 1]),
    ]
    with pytest.raises(FileError, match="stock Caffe lacks") as caught:
        read_model(saved(tmp_path, graph(nodes, {"x": X})), strict=True)
    assert "HardSwish ('HardSwish_a', 'HardSwish_c'), Permute (" in str(caught.value)
