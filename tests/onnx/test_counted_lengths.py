"""Numbers that a model computes from an open length: right for any, or refused."""

import numpy as np
import pytest

from tests.onnx.graphs import node
from tests.onnx.test_lengths import EMBEDDED, FLOAT, IDS, MASKED, SIZES, agree, refused

SAYS = "it computes with the number of records or the length of sequences, which the model leaves"
WIDE = [*EMBEDDED, node("Cast", "s", "f", to=FLOAT)]
MORE = {
    "unit": np.float32(1),
    "half": np.float32(0.5),
    "root": np.float32(-0.5),
    "many": np.array(200),
    "seven": np.array(7),
    "far": np.array([2**63 - 1]),
    "around": np.array([0, 1, 0, 0, 1, 0]),
}
PIECES = [
    node("Sub", "s one", "less"),
    *(node("Unsqueeze", f"{a} first", b) for a, b in (("s", "s1"), ("less", "l1"))),
    node("Slice", "word first l1 second", "before"),
    node("Slice", "word l1 s1 second", "after"),
]


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Div", "x f")],
        [node("Div", "f x")],
        [node("Mul", "x f")],
        [node("Max", "x f")],
        [node("Sqrt", "f", "r"), node("Div", "x r")],
        [node("Pow", "f root", "r"), node("Mul", "x r")],
        [node("Log", "f", "l"), node("Mul", "x l")],
        [node("Sub", "f unit", "less"), node("Add", "x less")],
        [node("Unsqueeze", "f first", "wide"), node("Div", "x wide")],
        [node("ReduceSum", "x second", "t", keepdims=0), node("Div", "t f")],
        [node("Mul", "f half", "h"), node("Floor", "h", "l"), node("Add", "x l")],
        [node("Mul", "f f", "square"), node("Div", "x square")],
        [node("Mul", "s s", "m"), node("Cast", "m", "g", to=FLOAT), node("Div", "x g")],
        [node("Min", "s many", "m"), node("Cast", "m", "g", to=FLOAT), node("Div", "x g")],
        [node("Less", "s seven", "c"), node("Cast", "c", "g", to=FLOAT), node("Mul", "x g")],
    ],
)
def test_a_number_from_the_length(nodes, tmp_path):
    agree([*WIDE, *nodes], IDS, tmp_path, **MORE)


def test_the_last_place_before_all_others(tmp_path):
    nodes = [*SIZES, *PIECES, node("Concat", "after before", axis=1)]
    agree(nodes, IDS, tmp_path, ((1, 7), (3, 24), (2, 2)), 0.0)


def test_whole_numbers_times_the_length(tmp_path):
    nodes = [*SIZES, node("Mul", "ids s", "t"), node("Cast", "t", to=FLOAT)]
    agree(nodes, IDS, tmp_path, tolerance=0.0)


def test_two_inputs_and_a_share_of_the_length(tmp_path):
    nodes = [
        *WIDE,
        node("Cast", "mask", "m", to=FLOAT),
        node("ReduceSum", "m second", "count", keepdims=1),
        node("Div", "count f", "share"),
        node("Unsqueeze", "share last", "each"),
        node("Mul", "x each"),
    ]
    agree(nodes, MASKED, tmp_path)


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Cast", "n", "f", to=FLOAT)],
        [node("Mul", "n s", "m"), node("Cast", "m", "f", to=FLOAT)],
        [node("Div", "s two", "h"), node("Mul", "h two", "m"), node("Cast", "m", "f", to=FLOAT)],
        [node("Cast", "places", "p", to=FLOAT), node("ReduceSum", "p first", "f", keepdims=0)],
        [node("Min", "places seven", "at"), node("Gather", "word at", "f", axis=1)],
        [node("Mul", "places zero", "at"), node("Gather", "word at", "f", axis=1)],
        [node("Div", "s two", "middle"), node("Gather", "word middle", "f", axis=1)],
        [
            *PIECES,
            node("Concat", "word word", "twice", axis=1),
            node("Slice", "twice s1 far second", "f"),
        ],
        [node("Split", "word", "f g", axis=1)],
        [node("Pad", "word around", "f", mode="edge")],
    ],
)
def test_what_does_not_grow_evenly(nodes, tmp_path):
    """Of the records, or a step of the length."""
    given = [*SIZES, *nodes, node("Div", "word f")]
    says = f"{SAYS}|it divides whole numbers, and no layer rounds|a size that the model leaves open"
    refused(given, IDS, tmp_path, f"{says}|a list that is as long as the input", **MORE)
