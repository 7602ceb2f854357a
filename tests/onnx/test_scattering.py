"""Blocks of values that are put into others: x[:, :, 1:, 1:] = y, as PyTorch exports it."""

import numpy as np
import pytest

import sparknet
from sparknet.errors import FileError
from tests.onnx.graphs import agree, draw, graph, node, onnx, run

SHAPE = (2, 5, 4)


def numbers(block):
    """The places of a block of each record, without the number of the record."""
    axes = [np.arange(size)[one] for size, one in zip(SHAPE, block, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"))


def block_of_each(block):
    places = numbers(block)
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n"),
        node("Range", "zero n one", "records"),
        node("Reshape", "records lined", "record"),
        node("Mul", "record nothing", "none"),
        node("Add", "record still", "column_0"),
        *(node("Add", f"none at_{axis}", f"column_{axis + 1}") for axis in range(3)),
        *(node("Unsqueeze", f"column_{axis} last", f"c{axis}") for axis in range(4)),
        node("Concat", "c0 c1 c2 c3", "places", axis=-1),
    ]
    more = {f"at_{axis}": one[None] for axis, one in enumerate(places)}
    still = np.zeros((1, *places.shape[1:]), np.int64)
    return nodes, {**CONSTANTS, **more, "still": still}


CONSTANTS = {
    "zero": np.array(0),
    "one": np.array(1),
    "nothing": np.array([0]),
    "last": np.array([-1]),
    "lined": np.array([-1, 1, 1, 1]),
}


@pytest.mark.parametrize(
    "block",
    [
        (slice(None), slice(1, None), slice(1, None)),
        (slice(1), slice(1, 4), slice(None)),
        (slice(None), slice(None), slice(2)),
        (slice(None), slice(None), slice(None)),
    ],
    ids=["after the first", "in the middle", "the first two", "all"],
)
def test_a_block_of_each_record(block, tmp_path):
    nodes, constants = block_of_each(block)
    nodes.append(node("ScatterND", "x places values"))
    sizes = numbers(block).shape[1:]
    path = tmp_path / "model.onnx"
    inputs = {"x": ["n", *SHAPE], "values": ["n", *sizes]}
    onnx.save(graph(nodes, inputs, constants=constants), str(path))
    net = sparknet.Net(str(path))
    for records in (1, 2, 5):
        feeds = {"x": draw(records, *SHAPE), "values": draw(records, *sizes, seed=1)}
        got = net.forward(feeds, outputs=["y"])["y"]
        np.testing.assert_array_equal(got, run(path, feeds)["y"])


def test_rows_of_a_constant(tmp_path):
    """Along the first axis, where the file fixes all sizes."""
    places = np.array([[1], [2]])
    nodes = [node("ScatterND", "table places x", "table_x"), node("Mul", "table_x two")]
    constants = {"table": draw(4, 3), "places": places, "two": np.float32([2, 3, 4])}
    agree(graph(nodes, {"x": (2, 3)}, constants=constants), {"x": draw(2, 3, seed=1)}, tmp_path)


@pytest.mark.parametrize("places", [[[0], [2]], [[2], [1]], [[1], [1]]])
def test_places_that_are_no_block(places, tmp_path):
    path = tmp_path / "model.onnx"
    constants = {"places": np.array(places), "rows": draw(2, 3)}
    model = graph([node("ScatterND", "x places rows")], {"x": (4, 3)}, constants=constants)
    onnx.save(model, str(path))
    says = r"'ScatterND_y' \(ScatterND\): the places are no block, one value beside the other"
    with pytest.raises(FileError, match=says):
        sparknet.Net(str(path))


def test_some_of_the_records(tmp_path):
    path = tmp_path / "model.onnx"
    constants = {"places": np.array([[0]]), "rows": draw(1, 3)}
    model = graph([node("ScatterND", "x places rows")], {"x": ("n", 3)}, constants=constants)
    onnx.save(model, str(path))
    with pytest.raises(FileError, match="it changes some of the records, which no layer does"):
        sparknet.Net(str(path))
