"""Each output of a model is a blob of its name that holds its values, whatever lies before it."""

import numpy as np
import pytest

from sparknet import Net
from sparknet.net.heads import find_heads
from tests.onnx.graphs import agree, draw, graph, node, onnx, run, save

X = ["n", 3, 4, 5]
TURNED = {"perm": [0, 2, 3, 1]}
SHAPE = (2, 3, 4, 5)

CASES = {
    "a value behind a transpose": ([node("Transpose", "x", "t", **TURNED), node("Relu", "t")], "y"),
    "and what is made of it": (
        [node("Transpose", "x", "t", **TURNED), node("Relu", "t"), node("Exp", "y", "z")],
        "y z",
    ),
    "turned back": (
        [
            node("Transpose", "x", "t", **TURNED),
            node("Relu", "t"),
            node("Transpose", "y", "z", perm=[0, 3, 1, 2]),
        ],
        "y z t",
    ),
    "the same in the other order of outputs": (
        [
            node("Transpose", "x", "t", **TURNED),
            node("Relu", "t"),
            node("Transpose", "y", "z", perm=[0, 3, 1, 2]),
            node("Sigmoid", "z", "u"),
        ],
        "u z t y",
    ),
    "the input turned": ([node("Transpose", "x", **TURNED)], "y"),
    "the input": ([node("Identity", "x"), node("Relu", "x", "z")], "z y"),
    "the same twice": ([node("Relu", "x"), node("Identity", "y", "z")], "z y"),
    "padded": ([node("Relu", "x", "r"), node("Pad", "r pads")], "y r"),
    "pieces turned": (
        [
            node("Transpose", "x", "t", **TURNED),
            node("Split", "t", "a b", axis=1),
            node("Concat", "b a", axis=1),
            node("Exp", "y", "c"),
        ],
        "a y c b",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_outputs(name, tmp_path):
    nodes, outputs = CASES[name]
    constants = {"pads": np.array([0, 0, 1, 0, 0, 0, 2, 1])} if name == "padded" else {}
    model = graph(nodes, {"x": X}, outputs.split(), constants)
    agree(model, {"x": draw(*SHAPE)}, tmp_path)


def test_an_output_that_another_node_reads_is_an_output_of_the_net(tmp_path):
    """Features and scores, and the layer that makes the scores stays the last."""
    nodes = [node("Gemm", "x w", "features"), node("Relu", "features", "r"), node("Gemm", "r v")]
    path = tmp_path / "model.onnx"
    constants = {"w": draw(3, 4), "v": draw(4, 2)}
    onnx.save(graph(nodes, {"x": ["n", 3]}, ["features", "y", "r"], constants), str(path))
    net, x = Net(path), draw(2, 3)
    got = net.forward({"x": x})
    assert [*got] == ["features", "r", "y"]
    for name, want in run(path, {"x": x}).items():
        np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6)
    assert net.described.layer[-1].name == "Gemm_y"
    assert [head.blob for head in find_heads(net)] == ["y"]


@pytest.mark.parametrize(("last", "kind"), [("Sigmoid", "labels"), ("Softmax", "classes")])
def test_probabilities_tell_what_they_are_of(last, kind, tmp_path):
    """Several labels are no classes; the scores are read beside the probabilities."""
    nodes = [node("Gemm", "x w", "scores"), node(last, "scores")]
    path = save(graph(nodes, {"x": ["n", 3]}, ["y"], {"w": draw(3, 4)}), tmp_path)
    (head,) = find_heads(Net(path))
    assert (head.blob, head.kind, head.probabilities) == ("y", kind, "y")
    assert head.scores not in (None, "y")
