"""What exporters write with many nodes, as one layer each; recurrent operators."""

import numpy as np
import pytest

from tests.onnx.graphs import agree, draw, graph, node, onnx, read_model

HALF, ONE = np.float32(0.5), np.float32(1)


@pytest.mark.parametrize("late", [True, False])
def test_gelu_by_erf(late, tmp_path):
    """x · (1 + erf(x / √2)) · 0.5, with the half at the end or with x."""
    nodes = [
        node("Add", "z bias", "x"),
        node("Div", "x root", "a"),
        node("Erf", "a", "b"),
        node("Add", "b one", "c"),
        *([node("Mul", "x c", "d"), node("Mul", "d half")] if late else []),
        *([] if late else [node("Mul", "x half", "d"), node("Mul", "d c")]),
    ]
    constants = {"root": np.float32(2**0.5), "one": ONE, "half": HALF, "bias": draw(5)}
    model = graph(nodes, {"z": ["n", 5]}, constants=constants)
    agree(model, {"z": draw(3, 5)}, tmp_path, types=["Bias", "GELU"])


def test_gelu_by_tanh(tmp_path):
    nodes = [
        node("Pow", "x three", "a"),
        node("Mul", "a small", "b"),
        node("Add", "x b", "c"),
        node("Mul", "c outer", "d"),
        node("Tanh", "d", "e"),
        node("Add", "e one", "f"),
        node("Mul", "x f", "g"),
        node("Mul", "g half"),
    ]
    constants = {"three": np.float32(3), "small": np.float32(0.044715), "one": ONE, "half": HALF}
    constants["outer"] = np.float32((2 / np.pi) ** 0.5)
    model = graph(nodes, {"x": ["n", 5]}, constants=constants)
    agree(model, {"x": draw(3, 5)}, tmp_path, types=["GELU"])


@pytest.mark.parametrize("high", [6, 5])
def test_hard_swish(high, tmp_path):
    """As PaddlePaddle writes it; with another limit it stays four layers."""
    nodes = [
        node("Add", "x three", "a"),
        node("Clip", "a zero high", "b"),
        node("Mul", "x b", "c"),
        node("Div", "c six"),
    ]
    numbers = {"three": 3, "zero": 0, "high": high, "six": 6}
    constants = {name: np.float32(number) for name, number in numbers.items()}
    model = graph(nodes, {"x": ["n", 5]}, constants=constants)
    types = agree(model, {"x": 4 * draw(3, 5)}, tmp_path)
    assert types == (["HardSwish"] if high == 6 else ["Power", "Clip", "Eltwise", "Power"])


def test_an_expression_that_only_looks_like_gelu(tmp_path):
    nodes = [
        node("Tanh", "x", "a"),
        node("Add", "a one", "b"),
        node("Mul", "x b", "c"),
        node("Mul", "c half"),
    ]
    model = graph(nodes, {"x": ["n", 5]}, constants={"one": ONE, "half": HALF})
    types = agree(model, {"x": draw(3, 5)}, tmp_path)
    assert "GELU" not in types


@pytest.mark.parametrize("square", ["Pow", "Mul"])
@pytest.mark.parametrize("axes", [[-1], [1]])
def test_layer_norm(square, axes, tmp_path):
    nodes = [
        node("ReduceMean", "x", "m", axes=axes),
        node("Sub", "x m", "d"),
        node("Pow", "d two", "s") if square == "Pow" else node("Mul", "d d", "s"),
        node("ReduceMean", "s", "v", axes=axes),
        node("Add", "v eps", "w"),
        node("Sqrt", "w", "r"),
        node("Div", "d r", "n"),
        node("Mul", "n g", "h"),
        node("Add", "h b"),
    ]
    shape = (6,) if axes == [-1] else (4, 1)
    constants = {
        "two": np.float32(2),
        "eps": np.float32(1e-3),
        "g": draw(*shape),
        "b": draw(*shape),
    }
    model = graph(nodes, {"x": ["n", 4, 6]}, constants=constants)
    moved = axes == [1]
    want = ["Permute", "LayerNorm", "Permute", "Scale"] if moved else ["LayerNorm", "Scale"]
    agree(model, {"x": draw(2, 4, 6)}, tmp_path, types=want)


def test_indices_that_may_count_from_the_end(tmp_path):
    """What Keras writes for an Embedding of numbers that are float32."""
    nodes = [
        node("Cast", "x", "i", to=7),
        node("Less", "i zero", "b"),
        node("Add", "i size", "a"),
        node("Where", "b a i", "p"),
        node("Gather", "table p", "e"),
        node("ReduceSum", "e one", keepdims=0),
    ]
    constants = {
        "zero": np.array(0),
        "size": np.array(9),
        "table": draw(9, 4),
        "one": np.array([1]),
    }
    model = graph(nodes, {"x": ["n", 3]}, constants=constants)
    x = np.array([[0, 8, 3], [5.7, 1, 2]], np.float32)
    types = agree(model, {"x": x}, tmp_path)
    assert types[0] == "Embed"


def test_padding_between_transposes_is_the_convolutions(tmp_path):
    """Keras keeps images as height x width x channels, and pads them so."""
    nodes = [
        node("Conv", "x v", "a"),
        node("Transpose", "a", "b", perm=[0, 2, 3, 1]),
        node("Pad", "b p", "c"),
        node("Transpose", "c", "d", perm=[0, 3, 1, 2]),
        node("Conv", "d w", "e"),
        node("Transpose", "e", "f", perm=[0, 2, 3, 1]),
        node("Pad", "f p", "g"),
        node("Identity", "g"),
    ]
    pads = np.array([0, 1, 2, 0, 0, 0, 1, 0])
    constants = {"p": pads, "v": draw(4, 3, 3, 3), "w": draw(2, 4, 3, 3)}
    model = graph(nodes, {"x": ["n", 3, 8, 9]}, constants=constants)
    want = ["Convolution", "Convolution", "Convolution", "Permute"]
    agree(model, {"x": draw(2, 3, 8, 9)}, tmp_path, types=want)


def test_what_is_written_twice_is_computed_once(tmp_path):
    """Small constants count by their values; an output keeps its name."""
    nodes = [
        node("Mul", "x one", "a"),
        node("Mul", "x other", "b"),
        node("Mul", "x third", "c"),
        node("LeakyRelu", "a", "p", alpha=0.5),
        node("LeakyRelu", "b", "q", alpha=0.5),
        node("LeakyRelu", "b", "r", alpha=0.25),
        node("Sum", "p q r c", "y"),
        node("LeakyRelu", "a", "z", alpha=0.5),
    ]
    constants = {"one": np.float32(3), "other": np.float32(3), "third": np.float32(4)}
    model = graph(nodes, {"x": ["n", 5]}, ("y", "z"), constants=constants)
    found = agree(model, {"x": draw(3, 5)}, tmp_path)
    assert (found.count("Power"), found.count("ReLU")) == (2, 3)


def test_pieces_of_one_axis_are_cut_by_one_layer(tmp_path):
    """As the queries, keys and values that one product makes; the order does not matter."""
    nodes = [
        node("Relu", "x", "r"),
        node("Gather", "r second", "b", axis=1),
        node("Gather", "r first", "a", axis=1),
        node("Gather", "r last", "c", axis=1),
        node("Slice", "r from to one", "d"),
        node("Slice", "r zero from one", "e"),
        node("Mul", "a b", "p"),
        node("Add", "p c", "y"),
        node("Concat", "d e", "z", axis=1),
    ]
    constants = {
        **{name: np.int64(value) for name, value in {"first": 0, "second": 1, "last": 4}.items()},
        **{name: np.array([value]) for name, value in {"from": 2, "to": 9}.items()},
        **{name: np.array([value]) for name, value in {"one": 1, "zero": 0}.items()},
    }
    model = graph(nodes, {"x": ["n", 5, 7]}, ("y", "z"), constants=constants)
    found = agree(model, {"x": draw(3, 5, 7)}, tmp_path)
    assert found.count("Slice") == 2


def test_the_last_layer_is_not_silence(tmp_path):
    nodes = [node("Split", "x p", "a b", axis=1), node("Relu", "a")]
    model = graph(nodes, {"x": ["n", 6]}, constants={"p": np.array([2, 4])})
    path = tmp_path / "net.onnx"
    agree(model, {"x": draw(2, 6)}, tmp_path)
    onnx.save(model, str(path))
    assert [one.type for one in read_model(path).net.layer] == ["Input", "Slice", "Silence", "ReLU"]


def test_quantised_weights_are_numbers(tmp_path):
    constants = {
        "q": np.arange(-6, 6, dtype=np.int8).reshape(2, 2, 3),
        "s": np.array([0.5, 0.25], np.float32),
        "z": np.array([1, -2], np.int8),
    }
    nodes = [node("DequantizeLinear", "q s z", "w", axis=0), node("Conv", "x w")]
    model = graph(nodes, {"x": ["n", 2, 9]}, constants=constants)
    agree(model, {"x": draw(2, 2, 9)}, tmp_path, types=["Convolution"])


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("after", [0, 1])
def test_recurrent(op, direction, after, tmp_path):
    if op != "GRU" and after:
        return
    ways, units, inputs, steps, gates = 1 + (direction == "bidirectional"), 4, 3, 5, GATES[op]
    attributes = {"hidden_size": units, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = after
    outputs = "y yh yc" if op == "LSTM" else "y yh"
    constants = {
        "w": draw(ways, gates * units, inputs),
        "r": draw(ways, gates * units, units, seed=1),
        "b": draw(ways, 2 * gates * units, seed=2),
    }
    model = graph(
        [node(op, "x w r b", outputs, **attributes)],
        {"x": [steps, "n", inputs]},
        outputs.split(),
        constants,
    )
    agree(model, {"x": draw(steps, 2, inputs)}, tmp_path)


def test_recurrent_from_a_constant_state(tmp_path):
    constants = {
        "w": draw(1, 16, 3),
        "r": draw(1, 16, 4, seed=1),
        "h": draw(1, 1, 4, seed=3),
        "c": np.zeros((1, 1, 4), np.float32),
    }
    made = node("LSTM", "x w r - - h c", "y", hidden_size=4)
    model = graph([made], {"x": [5, 1, 3]}, constants=constants)
    agree(model, {"x": draw(5, 1, 3)}, tmp_path)
