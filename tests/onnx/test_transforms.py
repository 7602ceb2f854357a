"""DFT, against onnxruntime."""

import numpy as np
import pytest

from tests.onnx.graphs import agree, draw, graph, node, refused

KINDS = [(1, {}), (2, {}), (1, {"inverse": 1}), (2, {"inverse": 1}), (1, {"onesided": 1})]


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize(("parts", "how"), KINDS)
def test_by_an_attribute(parts, how, axis, tmp_path):
    model = graph([node("DFT", "x", axis=axis, **how)], {"x": ["n", 5, 6, parts]})
    agree(model, {"x": draw(2, 5, 6, parts)}, tmp_path)


@pytest.mark.parametrize("axis", [1, -2, None])
@pytest.mark.parametrize(("parts", "how"), KINDS)
def test_by_an_input(parts, how, axis, tmp_path):
    names = "x" if axis is None else "x - axis"
    constants = {} if axis is None else {"axis": np.array(axis)}
    model = graph(
        [node("DFT", names, **how)], {"x": ["n", 5, 6, parts]}, constants=constants, opset=20
    )
    agree(model, {"x": draw(2, 5, 6, parts)}, tmp_path)


@pytest.mark.parametrize("length", [3, 4, 8])
@pytest.mark.parametrize(("parts", "how"), KINDS)
def test_a_length(parts, how, length, tmp_path):
    """Fewer places than there are, or more."""
    model = graph(
        [node("DFT", "x length", axis=2, **how)],
        {"x": ["n", 5, 6, parts]},
        constants={"length": np.array(length)},
    )
    agree(model, {"x": draw(2, 5, 6, parts)}, tmp_path)


def test_real_parts_of_two_axes(tmp_path):
    """As FNet mixes words and widths."""
    nodes = [
        node("Unsqueeze", "x last", "wide"),
        node("DFT", "wide", "first", axis=2),
        node("DFT", "first", "second", axis=1),
        node("Gather", "second zero", axis=3),
    ]
    constants = {"last": np.array([3]), "zero": np.array(0)}
    agree(graph(nodes, {"x": ["n", 7, 6]}, constants=constants), {"x": draw(2, 7, 6)}, tmp_path)


@pytest.mark.parametrize(
    ("sizes", "axis", "says"),
    [
        (["n", "s", 1], 1, "it transforms along an axis of any length: give the input's whole"),
        (["n", 5, 1], 0, "it transforms along an axis of any length"),
        (["n", 5, 1], 2, "it transforms the axis of real and imaginary parts"),
        (["n", 5, 3], 1, "its last axis must hold real parts"),
        (["n", 5000, 1], 1, "it transforms 5000 places; 1024 is the most"),
    ],
)
def test_refusals(sizes, axis, says, tmp_path):
    refused(graph([node("DFT", "x", axis=axis)], {"x": sizes}), tmp_path, says)
