"""Models that leave the length of sequences open: right for any length, or refused."""

import numpy as np
import pytest

import sparknet
from sparknet.errors import FileError, LayerError
from tests.onnx.graphs import TOLERANCE, draw, graph, node, onnx, run

INT, BOOL, FLOAT = onnx.TensorProto.INT64, onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT
VOCABULARY, PLACES, WIDTH = 20, 24, 6
IDS = {"ids": ["n", "s"]}
MASKED = {"ids": ["n", "s"], "mask": ["n", "s"]}
KINDS = {"ids": INT, "mask": INT}
CONSTANTS = {
    "words": draw(VOCABULARY, WIDTH, seed=1),
    "table": draw(PLACES, WIDTH, seed=2),
    "weights": draw(WIDTH, WIDTH, seed=3),
    "w": draw(WIDTH, 3, seed=4),
    "zero": np.array(0),
    "one": np.array(1),
    "two": np.array(2),
    "first": np.array([0]),
    "second": np.array([1]),
    "heads": np.array([1, 2]),
    "lowest": np.array(-np.inf, np.float32),
    "nothing": np.array(0, np.float32),
    "ones": np.array([1, 1, 1, 1]),
    "whole": np.array([-1]),
    "last": np.array([-1]),
}
SIZES = [
    node("Shape", "ids", "shape"),
    node("Gather", "shape zero", "n"),
    node("Gather", "shape one", "s"),
    node("Range", "zero s one", "places"),
    node("Gather", "words ids", "word"),
]
EMBEDDED = [*SIZES, node("Gather", "table places", "place"), node("Add", "word place", "x")]
ATTENTION = [
    node("MatMul", "x weights", "q"),
    node("Transpose", "x", "k", perm=[0, 2, 1]),
    node("MatMul", "q k", "scores"),
]


def feeds(names, records, length):
    random = np.random.default_rng(100 * records + length)
    mask = np.ones((records, length), np.int64)
    for row in mask:
        row[random.integers(1, length + 1) :] = 0
    found = {"ids": random.integers(0, VOCABULARY, (records, length)), "mask": mask}
    return {name: found[name] for name in names}


SEVERAL = ((1, 5), (3, 24), (2, 1), (4, 9))


def agree(nodes, inputs, folder, sizes=SEVERAL, tolerance=TOLERANCE, **more):
    """Compare for several numbers of records and lengths; returns the layers' types."""
    constants = {**CONSTANTS, **more}
    path = folder / "model.onnx"
    onnx.save(graph(nodes, inputs, constants=constants, types=KINDS), str(path))
    net = sparknet.Net(str(path))
    for records, length in sizes:
        given = feeds(inputs, records, length)
        want = run(path, given)["y"]
        got = net.forward(given, outputs=["y"])["y"]
        assert got.shape == want.shape
        atol = tolerance * max(1e-6, np.abs(want).max())
        np.testing.assert_allclose(got, want, rtol=min(tolerance, 1e-7), atol=atol)
    return [layer.type for layer in net.described.layer]


def refused(nodes, inputs, folder, says, **more):
    path = folder / "model.onnx"
    constants = {**CONSTANTS, **more}
    onnx.save(graph(nodes, inputs, constants=constants, types=KINDS), str(path))
    with pytest.raises(FileError, match=says):
        sparknet.Net(str(path))


@pytest.mark.parametrize(
    ("start", "end"), [(1, 2**63 - 1), (0, -1), (1, -1), (2, -3), (-1, 2**31 - 1), (-3, -1)]
)
def test_pieces_up_to_the_end(start, end, tmp_path):
    bounds = {"a": np.array([start]), "b": np.array([end])}
    nodes = [*SIZES, node("Slice", "word a b second")]
    agree(nodes, IDS, tmp_path, ((1, 7), (3, 24), (2, 6)), 0.0, **bounds)


def test_the_last_place(tmp_path):
    agree([*EMBEDDED, node("Gather", "x end", axis=1)], IDS, tmp_path, end=np.array(-1))


def test_neighbours_in_front_and_behind(tmp_path):
    """MobileBERT puts what stands before and after beside each word."""
    nodes = [
        *SIZES,
        node("Slice", "word one_ far second", "after"),
        node("Slice", "word first back second", "before"),
        node("Pad", "after pad_after", "next"),
        node("Pad", "before pad_before", "previous"),
        node("Concat", "next word previous", axis=2),
    ]
    more = {
        "one_": np.array([1]),
        "far": np.array([2**63 - 1]),
        "back": np.array([-1]),
        "pad_after": np.array([0, 0, 0, 0, 1, 0]),
        "pad_before": np.array([0, 1, 0, 0, 0, 0]),
    }
    agree(nodes, IDS, tmp_path, ((1, 7), (3, 24), (2, 2)), 0.0, **more)


@pytest.mark.parametrize(("kind", "gates"), [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
def test_both_ways_through_a_sequence(kind, gates, tmp_path):
    """The lexical analyser LAC reads a sentence forwards and backwards."""
    nodes = [
        *SIZES,
        node("Transpose", "word", "steps", perm=[1, 0, 2]),
        node(kind, "steps wide deep", "both", direction="bidirectional", hidden_size=WIDTH),
        node("Transpose", "both", perm=[2, 0, 1, 3]),
    ]
    rows = gates * WIDTH
    more = {"wide": draw(2, rows, WIDTH), "deep": draw(2, rows, WIDTH, seed=1)}
    types = agree(nodes, IDS, tmp_path, **more)
    assert (types.count(kind), types.count("Reverse")) == (2, 2)


HEADS, SPAN = 2, 9
DISENTANGLED = [
    *SIZES,
    node("Mul", "n two", "rows"),
    *(node("Unsqueeze", f"{name} first", f"{name}1") for name in ("n", "s", "rows")),
    node("Concat", "n1 s1 split", "apart", axis=0),
    node("Reshape", "word apart", "x4"),
    node("Transpose", "x4", "turned", perm=[0, 2, 1, 3]),
    node("Concat", "rows1 s1 whole", "merged", axis=0),
    node("Reshape", "turned merged", "q"),
    node("Concat", "n1 second second", "copies", axis=0),
    node("Tile", "keys copies", "tiled"),
    node("MatMul", "q tiled", "scores"),
    node("Unsqueeze", "places second", "down"),
    node("Unsqueeze", "places first", "across"),
    node("Sub", "down across", "apart_by"),
    node("Add", "apart_by four", "shifted"),
    node("Clip", "shifted zero eight", "buckets"),
    node("Concat", "rows1 s1 s1", "shape3", axis=0),
    node("Expand", "buckets shape3", "index"),
    node("GatherElements", "scores index", "y", axis=-1),
]


def test_positions_that_are_relative_and_repeated_for_each_head(tmp_path):
    """DeBERTa's disentangled attention: constants that come for each head of each record."""
    more = {
        "keys": draw(HEADS, WIDTH // HEADS, SPAN, seed=5),
        "split": np.array([HEADS, WIDTH // HEADS]),
        "four": np.array(4),
        "eight": np.array(8),
    }
    types = agree(DISENTANGLED, IDS, tmp_path, **more)
    assert {"BatchGather", "SizedLike"} <= set(types)


def test_places_and_a_mask(tmp_path):
    """As TorchScript exports BERT."""
    nodes = [
        *EMBEDDED,
        *ATTENTION,
        node("Unsqueeze", "mask second", "wide"),
        node("Cast", "wide", "number", to=FLOAT),
        node("Sub", "unit number", "hidden"),
        node("Mul", "hidden far", "added"),
        node("Add", "scores added", "masked"),
        node("Softmax", "masked", "share", axis=-1),
        node("MatMul", "share x", "y"),
    ]
    more = {"unit": np.float32(1), "far": np.float32(np.finfo(np.float32).min)}
    types = agree(nodes, MASKED, tmp_path, **more)
    assert types.count("SizedLike") == 2  # the places, and the mask over the queries


def test_a_small_table_that_is_read_at_its_first_row(tmp_path):
    """As BERT is exported without token types: a row for each token, and always the same."""
    nodes = [
        *EMBEDDED,
        node("Mul", "places zero", "none"),
        node("Gather", "kinds none", "kind"),
        node("Add", "x kind"),
    ]
    agree(nodes, IDS, tmp_path, kinds=draw(2, WIDTH, seed=7))


@pytest.mark.parametrize("flat", [False, True])
def test_a_mask_that_is_indexed(flat, tmp_path):
    """As PyTorch exports mask[records[:, None, None], keys]: by GatherND, or through one axis."""
    nodes = [
        *EMBEDDED,
        *ATTENTION,
        node("Cast", "mask", "truth", to=BOOL),
        node("Range", "zero n one", "records"),
        node("Unsqueeze", "records heads", "rows"),
        node("Unsqueeze", "places heads_first", "columns"),
    ]
    if flat:
        nodes += [
            node("Reshape", "truth whole", "all"),
            node("Mul", "rows s", "begin"),
            node("Add", "begin columns", "at"),
            node("Gather", "all at", "seen"),
        ]
    else:
        nodes += [
            node("Add", "rows columns", "both"),
            node("Shape", "both", "size"),
            node("Expand", "rows size", "r"),
            node("Expand", "columns size", "c"),
            node("Unsqueeze", "r last", "r1"),
            node("Unsqueeze", "c last", "c1"),
            node("Concat", "r1 c1", "at", axis=-1),
            node("GatherND", "truth at", "seen"),
        ]
    nodes += [
        node("Where", "seen scores lowest", "masked"),
        node("Softmax", "masked", "share", axis=-1),
        node("IsNaN", "share", "none"),
        node("Where", "none nothing share", "safe"),
        node("MatMul", "safe x", "y"),
    ]
    agree(nodes, MASKED, tmp_path, heads_first=np.array([0, 1]))


def test_places_counted_from_the_mask(tmp_path):
    """As RoBERTa counts them."""
    nodes = [
        *SIZES,
        node("CumSum", "mask one", "sum"),
        node("Mul", "sum mask", "at"),
        node("Gather", "table25 at", "place"),
        node("Add", "word place"),
    ]
    agree(nodes, MASKED, tmp_path, table25=draw(PLACES + 1, WIDTH))


@pytest.mark.parametrize("flat", [False, True])
def test_the_row_of_the_first_largest(flat, tmp_path):
    """As CLIP takes the end of each text: x[records, ids.argmax(-1)]."""
    nodes = [
        *EMBEDDED,
        node("Cast", "ids", "short", to=onnx.TensorProto.INT32),
        node("ArgMax", "short", "end", axis=-1, keepdims=0),
        node("Range", "zero n one", "records"),
    ]
    if flat:
        nodes += [
            node("Reshape", "x rows", "all"),
            node("Mul", "records s", "begin"),
            node("Add", "end begin", "at"),
            node("Gather", "all at"),
        ]
    else:
        nodes += [
            node("Unsqueeze", "records last", "r"),
            node("Unsqueeze", "end last", "e"),
            node("Concat", "r e", "at", axis=-1),
            node("GatherND", "x at"),
        ]
    agree(nodes, IDS, tmp_path, rows=np.array([-1, WIDTH]))


def test_rows_that_are_made_one_axis_and_two_again(tmp_path):
    """As GPT-2's products are exported."""
    nodes = [
        *EMBEDDED,
        node("Reshape", "x rows", "all"),
        node("Gemm", "all w", "product"),
        node("Unsqueeze", "n first", "n1"),
        node("Unsqueeze", "s first", "s1"),
        node("Concat", "n1 s1 three", "to", axis=0),
        node("Reshape", "product to"),
    ]
    agree(nodes, IDS, tmp_path, rows=np.array([-1, WIDTH]), three=np.array([3]))


@pytest.mark.parametrize("how", ["first", "mean", "max"])
def test_pooling(how, tmp_path):
    nodes = {
        "first": [node("Gather", "x zero", axis=1)],
        "mean": [
            node("Cast", "mask", "number", to=FLOAT),
            node("Unsqueeze", "number last", "m"),
            node("Mul", "x m", "kept"),
            node("ReduceSum", "kept second", "sum", keepdims=0),
            node("ReduceSum", "m second", "count", keepdims=0),
            node("Div", "sum count"),
        ],
        "max": [node("ReduceMax", "x", axes=[1], keepdims=0)],
    }[how]
    agree([*EMBEDDED, *nodes], MASKED if how == "mean" else IDS, tmp_path)


def test_more_than_the_table_has(tmp_path):
    path = tmp_path / "model.onnx"
    model = graph([*EMBEDDED, node("Relu", "x")], IDS, constants=CONSTANTS, types=KINDS)
    onnx.save(model, str(path))
    net = sparknet.Net(str(path))
    says = f"an axis of {PLACES + 1} is wanted, and the model holds values for {PLACES}"
    with pytest.raises(LayerError, match=says):
        net.forward(feeds(IDS, 2, PLACES + 1))


@pytest.mark.parametrize("size", ["N", "s"])
def test_a_length_that_is_called_as_the_records(size, tmp_path):
    path = tmp_path / "model.onnx"
    model = graph(
        [*EMBEDDED, node("Relu", "x")], {"ids": ["n", size]}, constants=CONSTANTS, types=KINDS
    )
    onnx.save(model, str(path))
    net = sparknet.Net(str(path), shapes=None if size == "N" else {"ids": (None, None)})
    for records, length in SEVERAL:
        given = feeds(IDS, records, length)
        np.testing.assert_allclose(
            net.forward(given, outputs=["y"])["y"], run(path, given)["y"], rtol=1e-6
        )


def test_a_piece_of_nothing(tmp_path):
    """As Phi-3 turns all of each head, and puts the rest behind it."""
    nodes = [*EMBEDDED, node("Slice", "x width far two_", "rest"), node("Concat", "x rest", axis=2)]
    more = {"width": np.array([WIDTH]), "far": np.array([2**31 - 1]), "two_": np.array([2])}
    agree(nodes, IDS, tmp_path, tolerance=0.0, **more)


def test_sizes_are_named_by_what_is_open(tmp_path):
    nodes = [*EMBEDDED, node("Reshape", "x to")]
    path = tmp_path / "model.onnx"
    model = graph(nodes, IDS, constants={**CONSTANTS, "to": np.array([0, 0, 4])}, types=KINDS)
    onnx.save(model, str(path))
    says = (
        r"'Reshape_y' \(Reshape\): \[N, s, 6\] does not become \[0, 0, 4\]; the exporter may have "
        r"fixed a size: give the input's whole shape \(shapes=\)"
    )
    with pytest.raises(FileError, match=says):
        sparknet.Net(str(path))


def test_a_piece_of_what_is_longer_than_the_input(tmp_path):
    """As Whisper cuts off a mask of one place more: it is no table, and bounds no length."""
    nodes = [
        *EMBEDDED,
        *ATTENTION,
        node("Add", "s one", "more"),
        node("Range", "zero more one", "wide"),
        node("Unsqueeze", "wide first", "row"),
        node("Slice", "row from_first to_last second", "all"),
        node("Unsqueeze", "places second", "down"),
        node("LessOrEqual", "all down", "seen"),
        node("Where", "seen scores lowest", "masked"),
        node("Softmax", "masked", "share", axis=-1),
        node("MatMul", "share x", "y"),
    ]
    more = {"from_first": np.array([0]), "to_last": np.array([-1])}
    agree(nodes, IDS, tmp_path, ((1, 5), (3, PLACES), (2, 1)), **more)
    longer = [one for one in nodes if "table place" not in " ".join(one.input)]
    longer = [node("Identity", "word", "x") if one.output[0] == "x" else one for one in longer]
    agree(longer, IDS, tmp_path, ((1, 5), (3, 90), (2, 1)), **more)


def test_a_table_that_is_read_at_places_of_each_record(tmp_path):
    """As torch.export writes table[places.repeat(records, 1)]: by GatherND."""
    nodes = [
        *SIZES,
        node("Unsqueeze", "places first", "row"),
        node("Unsqueeze", "n first", "n1"),
        node("Concat", "n1 second", "copies", axis=0),
        node("Tile", "row copies", "each"),
        node("Unsqueeze", "each last", "at"),
        node("GatherND", "table at", "place"),
        node("Add", "word place"),
    ]
    agree(nodes, IDS, tmp_path)
