"""Models whose file fixes the number of records: any number, where each is computed by itself."""

import numpy as np
import pytest

import sparknet
from sparknet.errors import LayerError
from sparknet.onnx import OnnxWarning
from tests.onnx.graphs import draw, graph, node, run, save

T, D = 4, 6
COUNTS = (1, 2, 5, 8, 11)


def ints(*values):
    return np.array(values)


def attention(n):
    """As PyTorch writes it: the number of records stands in the constants of three nodes."""
    nodes = [
        node("MatMul", "x w", "q"),
        node("Reshape", "q heads", "h"),
        node("Transpose", "h", "t", perm=[2, 0, 3, 1, 4]),
        node("Split", "t ones", "a b c", axis=0),
        *(node("Squeeze", f"{one} zero", f"{one}s") for one in "abc"),
        node("Transpose", "bs", "bt", perm=[0, 1, 3, 2]),
        node("MatMul", "as bt", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p cs", "o"),
        node("Transpose", "o", "ot", perm=[0, 2, 1, 3]),
        node("Reshape", "ot back"),
    ]
    return nodes, {
        "w": draw(D, 3 * D),
        "heads": ints(n, T, 3, 2, D // 2),
        "ones": ints(1, 1, 1),
        "zero": ints(0),
        "back": ints(n, T, D),
    }


def token(n):
    """A class token, which is there once for each record, and positions."""
    nodes = [node("Expand", "c s", "e"), node("Concat", "e x", "j", axis=1), node("Add", "j p")]
    positions = np.broadcast_to(draw(1, T + 1, D), (n, T + 1, D))
    return nodes, {"c": draw(1, 1, D), "s": ints(n, 1, D), "p": positions.copy()}


def rows(n):
    """All rows of all records in one product, and back."""
    nodes = [node("Reshape", "x flat", "f"), node("Gemm", "f w", "g"), node("Reshape", "g back")]
    return nodes, {"flat": ints(n * T, D), "w": draw(D, 5), "back": ints(n, T, 5)}


def time_first(n):
    """A recurrent layer whose result is brought into shape by a constant."""
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node("GRU", "t w r - - h", "g", hidden_size=3),
        node("Transpose", "g", "u", perm=[0, 2, 1, 3]),
        node("Reshape", "u s", "v"),
        node("Transpose", "v", perm=[1, 0, 2]),
    ]
    constants = {"w": draw(1, 9, D), "r": draw(1, 9, 3), "s": ints(T, n, 3)}
    return nodes, {**constants, "h": np.zeros((1, n, 3), np.float32)}


FORMS = {"attention": attention, "token": token, "rows": rows, "time first": time_first}


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("form", FORMS)
def test_any_number_of_records(form, n, tmp_path):
    """onnxruntime takes as many as the file says: each record stands in a batch of its own."""
    nodes, constants = FORMS[form](n)
    path = save(graph(nodes, {"x": [n, T, D]}, constants=constants), tmp_path)
    x = draw(max(COUNTS), T, D)
    want = np.concatenate(
        [run(path, {"x": np.repeat(x[i : i + 1], n, 0)})["y"][:1] for i in range(len(x))]
    )
    net = sparknet.Net(path)
    assert net.batch_size == n
    for count in COUNTS:
        got = net.forward({"x": x[:count]})["y"]
        assert got.shape == want[:count].shape
        np.testing.assert_allclose(got, want[:count], rtol=1e-4, atol=1e-5)


MIXING = {
    "a mean": ([node("ReduceMean", "x a", "m"), node("Sub", "x m")], {"a": ints(0)}),
    "behind each other": (
        [node("Concat", "x x", "c", axis=0), node("Reshape", "c s")],
        {"s": ints(2, 2 * T * D)},
    ),
    "copies": (
        [node("Tile", "x t", "c"), node("Reshape", "c s")],
        {"t": ints(2, 1, 1), "s": ints(2, -1)},
    ),
    "several rows of one": (
        [node("Reshape", "x s", "r"), node("MatMul", "r w")],
        {"s": ints(3, 16), "w": draw(16, 3)},
    ),
}


@pytest.mark.parametrize("form", MIXING)
def test_records_that_change_each_other(form, tmp_path):
    """The net is that of the file: it computes as many records as the file says."""
    nodes, constants = MIXING[form]
    path = save(graph(nodes, {"x": [2, T, D]}, constants=constants, opset=18), tmp_path)
    x = draw(2, T, D)
    with pytest.warns(OnnxWarning, match="the net takes 2 records at a time, as the file says"):
        got = sparknet.Net(path).forward({"x": x})["y"]
    np.testing.assert_allclose(got, run(path, {"x": x})["y"], rtol=1e-5, atol=1e-6)


def test_another_number_that_does_not_fit(tmp_path):
    nodes, constants = MIXING["several rows of one"]
    path = save(graph(nodes, {"x": [2, T, D]}, constants=constants), tmp_path)
    says = "the net takes 2 records at a time, and these are 3: Reshape"
    net = sparknet.Net(path)
    for _ in range(2):
        with pytest.raises(LayerError, match=says):
            net.forward({"x": draw(3, T, D)})
    assert net.forward({"x": draw(2, T, D)})["y"].shape == (3, 3)


def test_inputs_of_different_numbers_of_records(tmp_path):
    path = save(graph([node("Add", "x z")], {"x": ["N", D], "z": ["N", D]}), tmp_path)
    net = sparknet.Net(path)
    with pytest.raises(LayerError, match=r"different numbers of records \(x 3, z 2\): Eltwise"):
        net.forward({"x": draw(3, D), "z": draw(2, D)})
    assert net.forward({"x": draw(2, D), "z": draw(2, D)})["y"].shape == (2, D)
