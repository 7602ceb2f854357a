"""Choices and the types of values: what a model rounds, wraps or chooses, the net does too or
refuses."""

import re

import numpy as np
import pytest

from sparknet.errors import FileError
from tests.onnx.graphs import agree, draw, graph, node, onnx, read_model, run, save

X = (2, 3, 4, 5)
OPEN = ["n", *X[1:]]
KINDS = {name: getattr(onnx.TensorProto, name.upper()) for name in ("int32", "int64", "bool")}
BOOL, INT8, UINT8, INT32, INT64 = 9, 3, 2, 6, 7


def outcome(model, feeds, folder):
    """What the net and onnxruntime compute, which may be infinite."""
    from tests.onnx.graphs import converted

    path = save(model, folder)
    return converted(path, feeds, folder)[1]["y"], run(path, feeds)["y"]


@pytest.mark.parametrize("first", [False, True])
def test_what_is_not_chosen_may_be_infinite_or_no_number(first, tmp_path):
    nodes = [node("Greater", "x zero", "m"), node("Log", "x", "l"), node("Reciprocal", "x", "r")]
    nodes += [node("Where", "m l zero" if first else "m l r")]
    constants = {"zero": np.float32(0)}
    model = graph(nodes, {"x": OPEN}, constants=constants)
    x = draw(*X)
    x[0, 0] = 0
    got, want = outcome(model, {"x": x}, tmp_path)
    assert np.isfinite(want).all() == first
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_infinite_constants_stay_infinite(tmp_path):
    nodes = [
        node("Greater", "x zero", "m"),
        node("Where", "m zero low", "a"),
        node("Softmax", "a", "s", axis=-1),
        node("Equal", "a low", "e"),
        node("Not", "e", "k"),
        node("Where", "k s zero", "y"),
    ]
    constants = {"zero": np.float32(0), "low": np.float32(-np.inf)}
    x = draw(*X)
    x[0, 0, 0] = -1  # nothing is left of this row
    got, want = outcome(graph(nodes, {"x": OPEN}, constants=constants), {"x": x}, tmp_path)
    assert np.isfinite(want).all()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_finite_constants_are_chosen_by_layers_of_stock_caffe(tmp_path):
    nodes = [node("Greater", "x zero", "m"), node("Where", "m a b")]
    constants = {"zero": np.float32(0), "a": draw(3, 1, 1), "b": np.float32(-3e38)}
    types = agree(graph(nodes, {"x": OPEN}, constants=constants), {"x": draw(*X)}, tmp_path)
    assert "Where" not in types


@pytest.mark.parametrize(
    ("c", "a", "b"),
    [
        (OPEN, [3, 1, 1], [4, 5]),
        ([1, 1, 4, 5], OPEN, [1]),
        (["n", 1, 4, 1], [3, 1, 5], OPEN),
        ([4, 5], [1], OPEN),
    ],
)
def test_choices_are_spread(c, a, b, tmp_path):
    """A value without an open size is a constant."""
    shapes = {"c": c, "a": a, "b": b}
    inputs = {name: shape for name, shape in shapes.items() if "n" in shape}
    feeds = {
        name: draw(*(2 if one == "n" else one for one in shape), seed=number)
        for number, (name, shape) in enumerate(shapes.items())
    }
    nodes = [node("Greater", "c zero", "m"), node("Where", "m a b")]
    constants = {"zero": np.float32(0)} | {k: v for k, v in feeds.items() if k not in inputs}
    if "c" in constants:
        nodes, constants = [node("Where", "c a b")], {**constants, "c": constants["c"] > 0}
    fed = {name: feeds[name] for name in inputs}
    agree(graph(nodes, inputs, constants=constants), fed, tmp_path)


@pytest.mark.parametrize("kind", ["int32", "int64", "float"])
def test_casts_to_bool_keep_no_number(kind, tmp_path):
    nodes = [node("Cast", "i", "m", to=BOOL), node("Cast", "m", "f", to=1), node("Mul", "f x")]
    numbers = np.round(2 * draw(*X)) if kind == "float" else np.arange(120).reshape(X) % 4 - 1
    feeds = {"x": draw(*X), "i": numbers.astype(np.float32 if kind == "float" else kind)}
    types = {} if kind == "float" else {"i": KINDS[kind]}
    agree(graph(nodes, {"x": OPEN, "i": OPEN}, types=types), feeds, tmp_path)


def test_a_bool_as_another_type(tmp_path):
    nodes = [node("Greater", "x zero", "m"), node("Cast", "m", "a", to=UINT8)]
    nodes += [node("Cast", "a", "b", to=INT64), node("Cast", "b", "c", to=BOOL)]
    nodes += [node("Cast", "c", to=1)]
    model = graph(nodes, {"x": OPEN}, constants={"zero": np.float32(0)})
    agree(model, {"x": draw(*X)}, tmp_path)


REFUSED = {
    "wrapped": (
        [node("Cast", "i", "a", to=INT8)],
        "whole numbers of int64 may not fit int8; no layer wraps them",
    ),
    "rounded": ([node("Cast", "x", "a", to=UINT8)], "it rounds to uint8, and no layer rounds"),
    "divided after a change of sign": (
        [node("Neg", "i", "b"), node("Div", "b i", "a")],
        "it divides whole numbers, and no layer rounds",
    ),
    "divided after a choice": (
        [node("Cast", "i", "m", to=BOOL), node("Where", "m i i", "b"), node("Div", "b i", "a")],
        "it divides whole numbers",
    ),
    "mean": (
        [node("Cast", "i", "b", to=INT32), node("ReduceMean", "b", "a", axes=[1])],
        "it computes fractions of whole numbers, and no layer rounds",
    ),
    "root": ([node("Pow", "i half", "a")], "it takes whole numbers to the power of 0.5"),
    "no number": (
        [node("Equal", "x x", "b"), node("Not", "b", "a")],
        "it looks for what is not a number",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_layer_does_with_whole_numbers(name, tmp_path):
    nodes, says = REFUSED[name]
    model = graph(
        [*nodes, node("Cast", "a", to=1)],
        {"x": OPEN, "i": OPEN},
        constants={"half": np.float32(0.5)},
        types={"i": KINDS["int64"]},
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(FileError, match=re.escape(says)):
        read_model(path)


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_of_constants(fmod, tmp_path):
    kind = np.float32 if fmod else np.int64
    constants = {"a": np.array([-5, 5, -5, 5], kind), "b": np.array([3, -3, -3, 3], kind)}
    nodes = [node("Mod", "a b", "c", fmod=fmod), node("Cast", "c", "d", to=1), node("Mul", "x d")]
    agree(graph(nodes, {"x": ["n", 4]}, constants=constants), {"x": draw(2, 4)}, tmp_path)


def test_remainders_of_whole_constants_by_fmod(tmp_path):
    constants = {"a": np.array([-5, 5, -5, 5]), "b": np.array([3, -3, -3, 3])}
    nodes = [node("Mod", "a b", "c", fmod=1), node("Cast", "c", "d", to=1), node("Mul", "x d")]
    agree(graph(nodes, {"x": ["n", 4]}, constants=constants), {"x": draw(2, 4)}, tmp_path)


def test_rows_of_a_table_of_fractions_that_become_whole(tmp_path):
    """The places are whole numbers, and the rows are none."""
    nodes = [
        node("Gather", "table i", "a"),
        node("Cast", "a", "b", to=onnx.TensorProto.INT32),
        node("Cast", "b", to=onnx.TensorProto.FLOAT),
    ]
    constants = {"table": np.float32([0.5, 1.9, -2.7, 3.0])}
    model = graph(nodes, {"i": ["n", 3]}, constants=constants, types={"i": onnx.TensorProto.INT64})
    agree(model, {"i": np.array([[0, 1, 2], [3, 2, 1]])}, tmp_path)
