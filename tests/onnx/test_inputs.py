"""What the caller says about inputs: shapes, and the axis of records."""

from pathlib import Path

import numpy as np
import pytest

import sparknet
from sparknet.cli import main
from sparknet.errors import FileError, SpecError
from sparknet.onnx import write_model
from tests.onnx.graphs import draw, graph, node, onnx, read_model, run, save

W = draw(4, 3, 3, 3)
CONV = [node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("Relu", "a")]


def saved(folder: Path, shape: list[int | str], kernel: np.ndarray = W) -> Path:
    return save(graph(CONV, {"x": shape}, constants={"w": kernel}), folder)


def test_an_open_width_is_not_taken_for_records(tmp_path):
    path = saved(tmp_path, [1, 3, 8, "width"])
    with pytest.raises(FileError, match=r"input 'x' \(1 x 3 x 8 x width\) leaves axis 3 open"):
        read_model(path)
    x = draw(5, 3, 8, 21)
    want = np.concatenate([run(path, {"x": one[None]})["y"] for one in x])
    for keywords in (
        {"batch_axis": {"x": 0}},
        {"batch_axis": {"x": -4}},
        {"shapes": {"x": [None, 3, 8, 21]}},
        {"shapes": {"x": [2, 3, 8, 21]}, "batch_axis": {"x": 0}},
    ):
        got = sparknet.Net(path, **keywords).forward({"x": x})["y"]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_an_axis_of_records_is_opened_only_where_records_stay_apart(tmp_path):
    path = tmp_path / "model.onnx"
    nodes = [node("ReduceSum", "x a", keepdims=1)]
    constants = {"a": np.array([0])}
    onnx.save(graph(nodes, {"x": [1, 3]}, constants=constants), str(path))
    read_model(path)
    with pytest.raises(FileError, match="records"):
        read_model(path, batch_axis={"x": 0})


def test_time_that_comes_first_and_is_turned_around(tmp_path):
    """The axis of records is found though the layer that turns steps around takes more of them."""
    arrays = {"w": draw(1, 12, 3), "r": draw(1, 12, 4), "b": draw(1, 24)}
    gru = node("GRU", "x w r b", "a", hidden_size=4, direction="reverse", linear_before_reset=1)
    path = save(graph([gru, node("Relu", "a")], {"x": [5, "n", 3]}, constants=arrays), tmp_path)
    net = sparknet.Net(path)
    assert net.inputs["x"].axis == 1
    x = draw(5, 6, 3)
    got = net.forward({"x": np.moveaxis(x, 1, 0)})["y"]
    np.testing.assert_allclose(got, run(path, {"x": x})["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"shapes": {"y": [1, 3, 8, 8]}}, r"shapes names 'y'; the model's inputs are 'x'"),
        ({"batch_axis": {"X": 0}}, r"batch_axis names 'X'; the model's inputs are 'x'"),
        ({"batch_axis": {"x": 4}}, r"batch_axis says axis 4 of input 'x', which has 4"),
        ({"shapes": {"x": [1, 3]}}, r"input 'x' has 4 axes: \[1, 3\]"),
    ],
)
def test_what_fits_no_input_is_refused(tmp_path, keywords, says):
    with pytest.raises(FileError, match=says):
        sparknet.Net(saved(tmp_path, ["n", 3, 8, 8]), **keywords)


def test_it_is_for_an_onnx_file(tmp_path):
    with pytest.raises(SpecError, match=r"batch_axis is for the inputs of a \.onnx"):
        sparknet.Net('layer { name: "x" type: "Input" top: "x" }', batch_axis={"x": 0})


def test_show_prints_the_axes(tmp_path, capsys):
    path = saved(tmp_path, [1, 3, 8, "width"])
    assert main(["show", str(path), "--batch-axis", "x=0"]) == 0
    assert "input x: records x 3 x 8 x any length" in capsys.readouterr().out
    assert main(["show", str(path), "--shape", "x=2x3x8x8"]) == 0
    assert "input x: 2 x 3 x 8 x 8, as the file says" in capsys.readouterr().out
    assert main(["show", str(path), "--shape", "x=Nx3x8x8"]) == 0
    assert "input x: records x 3 x 8 x 8\n" in capsys.readouterr().out


def test_lengths_of_two_names_that_must_be_one(tmp_path):
    path = tmp_path / "model.onnx"
    shapes = {"x": ["n", "s1", 3], "mask": ["n", "s2", 1]}
    onnx.save(graph([node("Mul", "x mask")], shapes), str(path))
    x, mask = draw(2, 7, 3), draw(2, 7, 1, seed=1)
    got = sparknet.Net(path).forward({"x": x, "mask": mask})["y"]
    np.testing.assert_allclose(got, x * mask, rtol=1e-6)


def branches(folder: Path) -> Path:
    """A model that computes otherwise by an input of one number."""
    kind = onnx.TensorProto.FLOAT
    results = [onnx.helper.make_tensor_value_info("r", kind, None)]
    then, other = (
        onnx.helper.make_graph([node("Mul", f"x {one}", "r")], one, [], results) for one in "ab"
    )
    nodes = [
        node("Equal", "rate low", "is_low"),
        node("If", "is_low", "y", then_branch=then, else_branch=other),
    ]
    constants = {"low": np.array(8000), "a": draw(3), "b": draw(3, seed=1)}
    path = folder / "model.onnx"
    types = {"rate": onnx.TensorProto.INT64}
    shapes: dict[str, list[int | str]] = {"x": ["n", 3], "rate": []}
    onnx.save(graph(nodes, shapes, constants=constants, types=types), str(path))
    return path


@pytest.mark.parametrize("rate", [8000, 16000])
def test_the_value_of_an_input_of_one_number(tmp_path, rate):
    path, x = branches(tmp_path), draw(2, 3)
    with pytest.raises(FileError, match=r"no branches: say .* one number, shapes=\{'rate': …\}"):
        sparknet.Net(path)
    got = sparknet.Net(path, shapes={"rate": rate}).forward({"x": x})["y"]
    np.testing.assert_allclose(got, run(path, {"x": x, "rate": np.array(rate)})["y"], rtol=1e-6)
    assert main(["show", str(path), "--shape", f"rate={rate}"]) == 0


def test_an_input_of_one_number_that_records_cannot_fill(tmp_path):
    path = save(graph([node("Mul", "x by")], {"x": ["n", 3], "by": []}), tmp_path)
    with pytest.raises(SpecError, match="'by' has no axis along which records lie"):
        sparknet.Net(path)
    x = draw(2, 3)
    np.testing.assert_allclose(sparknet.Net(path, shapes={"by": 0.5}).forward(x)["y"], x / 2)


def test_one_open_size_is_that_of_all_inputs(tmp_path):
    """No layer of the net tells that states have their records along the second axis."""
    path = tmp_path / "model.onnx"
    nodes = [node("Split", "h", "a b", axis=0), node("Squeeze", "b zero", "s"), node("Add", "x s")]
    constants = {"zero": np.array([0])}
    onnx.save(graph(nodes, {"x": ["n", 4], "h": [2, "n", 4]}, constants=constants), str(path))
    net = sparknet.Net(path)
    assert {name: entry.axis for name, entry in net.inputs.items()} == {"x": 0, "h": 1}
    x, h = draw(3, 4), draw(2, 3, 4)
    np.testing.assert_allclose(net.forward({"x": x, "h": np.moveaxis(h, 1, 0)})["y"], x + h[1])


def test_records_along_another_axis_are_written_as_they_are(tmp_path):
    path, out = tmp_path / "model.onnx", tmp_path / "again.onnx"
    nodes = [node("Relu", "x"), node("Relu", "h", "z")]
    onnx.save(graph(nodes, {"x": ["n", 4], "h": [2, "n", 4]}, ["y", "z"]), str(path))
    write_model(out, sparknet.Net(path))
    sizes = onnx.load(str(out)).graph.input[1].type.tensor_type.shape.dim
    assert [one.dim_value for one in sizes] == [2, 1, 4]


def test_an_image_in_a_recurrent_net_of_one_record(tmp_path):
    """Its shape is given whole: channels are no records."""
    path = tmp_path / "model.onnx"
    nodes = [
        *CONV[:1],
        node("Transpose", "a", "t", perm=[3, 0, 1, 2]),
        node("Reshape", "t steps", "s"),
        node("GRU", "s w2 r - - h", "o", hidden_size=3),
        node("Reshape", "o flat"),
    ]
    constants = {"w": W, "w2": draw(1, 9, 32), "r": draw(1, 9, 3)}
    constants |= {"steps": np.array([6, -1, 32]), "flat": np.array([1, -1])}
    shapes: dict[str, list[int | str]] = {"x": ["n", 3, 8, "width"], "h": [1, 1, 3]}
    onnx.save(graph(nodes, shapes, constants=constants), str(path))
    net = sparknet.Net(path, shapes={"x": [1, 3, 8, 6]})
    assert {name: entry.axis for name, entry in net.inputs.items()} == {"x": 0, "h": 1}
    feeds = {"x": draw(1, 3, 8, 6), "h": draw(1, 1, 3)}
    np.testing.assert_allclose(net.forward(feeds)["y"], run(path, feeds)["y"], rtol=1e-4, atol=1e-5)
