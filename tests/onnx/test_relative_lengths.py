"""Sequences of any length in models that look at places relative to each other."""

import numpy as np
import pytest

import sparknet
from sparknet.errors import FileError, LayerError
from tests.onnx.graphs import draw, graph, node, onnx
from tests.onnx.test_lengths import (
    ATTENTION,
    CONSTANTS,
    EMBEDDED,
    FLOAT,
    IDS,
    KINDS,
    PLACES,
    SIZES,
    VOCABULARY,
    WIDTH,
    agree,
    feeds,
    refused,
)

FAR = 2**63 - 1


def bounds(**values):
    return {name: np.array([value]) for name, value in values.items()}


FROM_THE_END = [
    *SIZES,
    node("Sub", "s places", "from_the_end"),
    node("Cast", "from_the_end", "f", to=FLOAT),
    node("Unsqueeze", "f last", "g"),
]


def test_places_counted_from_the_end(tmp_path):
    """All of them grow by one with each place."""
    agree([*FROM_THE_END, node("Add", "word g")], IDS, tmp_path)


def test_squares_of_places_counted_from_the_end(tmp_path):
    """They are the last of those of a longer sequence."""
    agree([*FROM_THE_END, node("Mul", "g g", "square"), node("Add", "word square")], IDS, tmp_path)


def test_a_constant_that_grows_unevenly(tmp_path):
    nodes = [
        *SIZES,
        node("Mul", "s places", "far"),
        node("Cast", "far", "f", to=FLOAT),
        node("Unsqueeze", "f last", "times"),
        node("Add", "word times"),
    ]
    says = "'times' is a constant that changes with the length of the input otherwise than by its"
    refused(nodes, IDS, tmp_path, rf"{says} end: give the input's whole shape \(shapes=\)")


@pytest.mark.parametrize("last", [True, False])
def test_windows(last, tmp_path):
    """As ConvBERT takes the neighbours of each word: PyTorch's unfold."""
    nodes = [
        *SIZES,
        node("Pad", "word around", "wide"),
        node("Unsqueeze", f"places {'first' if last else 'second'}", "line"),
        node("Add", "line offsets", "at"),
        node("Gather", "wide at", axis=1),
    ]
    offsets = np.arange(3)[:, None] if last else np.arange(3)
    around = np.array([0, 1, 0, 0, 1, 0])
    agree(nodes, IDS, tmp_path, tolerance=0.0, around=around, offsets=offsets)


@pytest.mark.parametrize("start", [0, 1])
def test_as_many_as_the_input_has(start, tmp_path):
    """Of an axis that is longer."""
    nodes = [
        *SIZES,
        node("Concat", "word word", "twice", axis=1),
        node("Add", "places from", "at"),
        node("Gather", "twice at", axis=1),
    ]
    agree(nodes, IDS, tmp_path, ((1, 5), (3, 24), (2, 2)), 0.0, **{"from": np.array(start)})


SINUSOIDS = [
    *EMBEDDED,
    *ATTENTION,
    node("Neg", "s", "least"),
    node("Range", "s least minus", "apart"),
    node("Cast", "apart", "apart_f", to=FLOAT),
    node("Unsqueeze", "apart_f second", "column"),
    node("Mul", "column rates", "angles"),
    node("Sin", "angles", "sines"),
]
SHIFTED = [
    *(node("Unsqueeze", f"{name} first", f"{name}1") for name in ("n", "s", "long", "less")),
    node("Concat", "n1 long1 s1", "to", axis=0),
    node("Reshape", "by_place to", "slanted"),
    node("Slice", "slanted from_1 far second", "cut"),
    node("Concat", "n1 s1 less1", "back", axis=0),
    node("Reshape", "cut back", "shifted"),
    node("Gather", "shifted places", "relative", axis=2),
    node("Add", "scores relative"),
]


def test_scores_that_are_shifted(tmp_path):
    """As XLNet and Transformer-XL do: rows of sinusoids for what is before and behind."""
    nodes = [
        *SINUSOIDS,
        node("Transpose", "sines", "keys", perm=[1, 0]),
        node("MatMul", "q keys", "by_place"),
        node("Mul", "s two", "long"),
        node("Sub", "long one", "less"),
        *SHIFTED,
    ]
    more = bounds(from_1=1, far=FAR)
    rates = draw(WIDTH, seed=7)
    types = agree(nodes, IDS, tmp_path, minus=np.array(-1), rates=rates, **more)
    assert "Reverse" in types


def test_rows_of_places_for_each_record(tmp_path):
    """A constant of twice the length, which the model copies for all records."""
    nodes = [
        *SINUSOIDS,
        node("Unsqueeze", "sines first", "sines1"),
        node("Unsqueeze", "n first", "n1"),
        node("Concat", "n1 second second", "copies", axis=0),
        node("Expand", "sines1 copies", "each"),
        node("Einsum", "each weights", "keys", equation="nsd,de->nse"),
        node("Transpose", "keys", "turned", perm=[0, 2, 1]),
        node("MatMul", "q turned", "all"),
        node("ReduceMax", "all", axes=[2], keepdims=0),
    ]
    agree(nodes, IDS, tmp_path, minus=np.array(-1), rates=draw(WIDTH, seed=7))


AROUND_THE_MIDDLE = [
    *EMBEDDED,
    *ATTENTION,
    node("Sub", "middle s", "lower"),
    node("Add", "middle s", "upper"),
    node("Unsqueeze", "lower first", "begin"),
    node("Unsqueeze", "upper first", "end"),
    node("Slice", "apart begin end first", "rows"),
    node("Transpose", "rows", "keys", perm=[1, 0]),
    node("MatMul", "q keys", "by_place"),
    node("Unsqueeze", "places second", "column"),
    node("Sub", "column places", "distance"),
    node("Add", "distance s", "row"),
    node("Unsqueeze", "row first", "row1"),
    node("Shape", "scores", "shape3"),
    node("Expand", "row1 shape3", "taken"),
    node("GatherElements", "by_place taken", "relative", axis=2),
    node("Add", "scores relative"),
]
AROUND = {"middle": np.array(PLACES), "apart": draw(2 * PLACES, WIDTH, seed=9)}


def test_rows_around_the_middle_of_a_table(tmp_path):
    """As the first DeBERTa does: the rows [middle - length, middle + length), picked by what is
    counted from their first."""
    agree(AROUND_THE_MIDDLE, IDS, tmp_path, **AROUND)


def test_more_than_a_table_has_around_its_middle(tmp_path):
    path = tmp_path / "model.onnx"
    constants = {**CONSTANTS, "table": draw(2 * PLACES, WIDTH), **AROUND}
    onnx.save(graph(AROUND_THE_MIDDLE, IDS, constants=constants, types=KINDS), str(path))
    net = sparknet.Net(str(path))
    says = f"an axis of {PLACES + 1} is wanted, and the model holds values for {PLACES}"
    with pytest.raises(LayerError, match=says):
        net.forward(feeds(IDS, 2, PLACES + 1))


def test_a_size_that_the_exporter_fixed(tmp_path):
    """Funnel's places, by PyTorch's older exporter, are those of the length of the example."""
    nodes = [*EMBEDDED, *ATTENTION, node("MatMul", "x fixed", "some"), node("Add", "scores some")]
    path = tmp_path / "model.onnx"
    constants = {**CONSTANTS, "fixed": draw(WIDTH, 12)}
    onnx.save(graph(nodes, IDS, constants=constants, types=KINDS), str(path))
    says = (
        r"node 'Add_y' \(Add\): .* do not fit each other; the exporter may have fixed a size: give "
        r"the input's whole shape \(shapes=\)$"
    )
    with pytest.raises(FileError, match=says):
        sparknet.Net(str(path))
    given = {"ids": (2, 12)}
    net = sparknet.Net(str(path), shapes=given)
    ids = np.random.default_rng(1).integers(0, VOCABULARY, (2, 12))
    assert net.forward({"ids": ids}, outputs=["y"])["y"].shape == (2, 12, 12)


@pytest.mark.parametrize("kept", [True, False])
def test_the_last_places_of_a_table(kept, tmp_path):
    """As MPT takes the end of what it adds for the distance to the last word."""
    nodes = [
        *EMBEDDED,
        *ATTENTION,
        node("Sub", "rows s", "begin"),
        node("Unsqueeze", "begin first", "b"),
        node("Slice", "alibi b end third", "added"),
        node("Add", "scores added" if kept else "added scores", "y"),
    ]
    more = {
        **bounds(end=FAR, third=2),
        "rows": np.array(PLACES),
        "alibi": draw(1, 1, PLACES, seed=8),
    }
    types = agree(nodes, IDS, tmp_path, **more)
    assert "Reverse" in types
