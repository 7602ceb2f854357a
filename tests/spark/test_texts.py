"""Texts on Spark: against tokenizers and onnxruntime by hand."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparknet import load
from sparknet.errors import FileError, MissingExtra, SparkError, SpecError
from sparknet.predict.metrics import Classified
from sparknet.predict.texts import Texts
from sparknet.spark import SparkModel
from tests.onnx.graphs import draw, graph, node, onnx, run

tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *"abcdefgh", "the", "cat", "sat", "on", "mat"]
TEXTS = [
    "the cat sat on the mat",
    "a",
    "b c d e f g h a b c d e f g h a b c d e f g h",
    "dog",
    "",
    "cat cat cat",
    "the mat sat on a b c",
    "e f",
]
WIDTH, LONGEST = 6, 12
COLUMNS = {"input_ids": "text"}
INT, FLOAT = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Words, cut off after twelve, and padded on the right by 0."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    made.enable_truncation(LONGEST)
    made.enable_padding(pad_id=0, pad_token="[PAD]", length=LONGEST)
    path = tmp_path_factory.mktemp("text") / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Attention among the tokens that the mask shows, as an encoder has it."""
    nodes = [
        node("Gather", "words input_ids", "word"),
        node("Gather", "kinds token_type_ids", "kind"),
        node("Shape", "input_ids", "shape"),
        node("Gather", "shape one", "s"),
        node("Range", "zero s one", "places"),
        node("Gather", "table places", "place"),
        node("Add", "word place", "placed"),
        node("Add", "placed kind", "x"),
        node("Transpose", "x", "k", perm=[0, 2, 1]),
        node("MatMul", "x k", "scores"),
        node("Unsqueeze", "attention_mask second", "wide"),
        node("Cast", "wide", "number", to=FLOAT),
        node("Sub", "unit number", "hidden"),
        node("Mul", "hidden far", "added"),
        node("Add", "scores added", "masked"),
        node("Softmax", "masked", "share", axis=-1),
        node("MatMul", "share x", "last_hidden_state"),
        node("Gather", "last_hidden_state zero", "first", axis=1),
        node("Gemm", "first head", "logits"),
    ]
    constants = {
        "words": draw(len(WORDS), WIDTH, seed=1),
        "kinds": draw(2, WIDTH, seed=4),
        "table": draw(LONGEST, WIDTH, seed=2),
        "head": draw(WIDTH, 3, seed=3),
        "zero": np.array(0),
        "one": np.array(1),
        "second": np.array([1]),
        "unit": np.float32(1),
        "far": np.float32(-1e9),
    }
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    made = graph(
        nodes,
        {name: ["batch", "sequence"] for name in inputs},
        ["last_hidden_state", "logits"],
        constants,
        types=dict.fromkeys(inputs, INT),
    )
    path = tmp_path_factory.mktemp("text") / "model.onnx"
    onnx.save(made, str(path))
    return path


@pytest.fixture(scope="module")
def frame(session):
    return session.createDataFrame(list(enumerate(TEXTS)), "number int, text string")


def by_hand(tokenizer: Path, model: Path, text: str) -> dict[str, np.ndarray]:
    """One text, without padding."""
    made = tokenizers.Tokenizer.from_file(str(tokenizer))
    made.no_padding()
    tokens = made.encode(text)
    feeds = {
        "input_ids": np.array([tokens.ids]),
        "attention_mask": np.array([tokens.attention_mask]),
        "token_type_ids": np.array([tokens.type_ids]),
    }
    found = run(model, feeds)
    hidden = found["last_hidden_state"][0]
    found |= {"mean": hidden.mean(0), "cls": hidden[0], "max": hidden.max(0)}
    return found


def collected(made, name):
    return [row[name] for row in made.orderBy("number").collect()]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_embeddings(pooling, tokenizer, model, frame, tmp_path):
    embed = SparkModel(model, tokenizer=tokenizer, columns=COLUMNS, pooling=pooling)
    made = embed.transform(frame, ["pooled", "normalized"], batch=3).cache()
    want = [by_hand(tokenizer, model, text)[pooling] for text in TEXTS]
    np.testing.assert_allclose(collected(made, "pooled"), want, rtol=1e-4, atol=1e-5)
    unit = [one / np.linalg.norm(one) for one in want]
    np.testing.assert_allclose(collected(made, "normalized"), unit, rtol=1e-4, atol=1e-5)
    assert embed.transform(frame).columns == ["number", "text", "pooled"]


def test_many_texts_of_mixed_length(tokenizer, model, session, tmp_path):
    """So many that batches are cut where there would be much padding."""
    texts = [TEXTS[number % 7 * (number % 5 > 3)] for number in range(700)]
    frame = session.createDataFrame(list(enumerate(texts)), "number int, text string").coalesce(1)
    embed = SparkModel(model, tokenizer=tokenizer, columns=COLUMNS, pooling="mean")
    got = collected(embed.transform(frame, ["pooled"], batch=500), "pooled")
    wanted = {text: by_hand(tokenizer, model, text)["mean"] for text in set(texts)}
    np.testing.assert_allclose(got, [wanted[text] for text in texts], rtol=1e-4, atol=1e-5)


LENGTHS = st.lists(st.integers(1, 512), max_size=300).map(sorted)


@given(LENGTHS, st.integers(1, 64))
@example([8] * 200 + [500] * 3, 64)
@example([9] * 200, 64)
def test_batches_hold_each_text_once_and_little_padding(lengths, most):
    cut = Texts("", {}, None, None).batches(lengths, most)
    assert [one for at in cut for one in lengths[at]] == lengths
    for at in cut[:-1]:
        batch = lengths[at]
        assert 1 <= len(batch) <= most
        after = lengths[at.stop]
        tokens = sum(batch) + after
        assert len(batch) == most or len(batch) * after + after - tokens > tokens / 8
    for at in cut:
        batch = lengths[at]
        padding = len(batch) * max(batch, default=0) - sum(batch)
        assert padding <= sum(batch) / 8 or sum(batch[:-1]) < 1024


@given(LENGTHS, st.integers(1, 64))
def test_a_net_of_one_length_takes_whole_batches(lengths, most):
    cut = Texts("", {}, 512, None).batches(lengths, most)
    assert [at.start for at in cut] == [*range(0, max(len(lengths), 1), most)]


def test_evaluated(tokenizer, model, session):
    labels = [number % 3 for number in range(len(TEXTS))]
    rows = list(zip(TEXTS, labels, strict=True))
    data = session.createDataFrame(rows, "words string, label int")
    want = np.zeros((3, 3), int)
    for text, label in rows:
        want[label, by_hand(tokenizer, model, text)["logits"].argmax()] += 1
    for pooling in (None, "mean"):
        scores = SparkModel(model, tokenizer=tokenizer, columns=COLUMNS, pooling=pooling)
        got = scores.evaluate(data, "label", columns={"input_ids": "words"}, batch=3)
        assert isinstance(got, Classified)
        assert got.confusion.tolist() == want.tolist()
        assert not got.others
    odd = session.createDataFrame([*rows, (None, 1)], "words string, label int")
    scores = SparkModel(model, tokenizer=tokenizer, columns={"input_ids": "words"})
    left = scores.evaluate(odd, "label", invalid="drop")
    assert (left.rows, left.dropped) == (len(TEXTS), 1)


def test_embeddings_alone_are_not_evaluated(tokenizer, model, session, tmp_path):
    made = onnx.load(str(model))
    del made.graph.node[-2:], made.graph.output[1]
    onnx.save(made, str(tmp_path / "encoder.onnx"))
    data = session.createDataFrame([("a", 1)], "text string, label int")
    embed = SparkModel(
        tmp_path / "encoder.onnx", tokenizer=tokenizer, columns=COLUMNS, pooling="mean"
    )
    with pytest.raises(SparkError, match="the net has no prediction with one row per record"):
        embed.evaluate(data, "label")


def test_saved_and_read_again(tokenizer, model, frame, tmp_path):
    embed = SparkModel(model, tokenizer=tokenizer, columns=COLUMNS, pooling="mean")
    embed.save(tmp_path / "net.caffemodel")
    again = SparkModel(tmp_path / "net.caffemodel")
    want = [by_hand(tokenizer, model, text)["mean"] for text in TEXTS]
    got = collected(again.transform(frame), "pooled")
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for rows in (TEXTS, {"text": TEXTS}, frame.toPandas()):
        here = load(tmp_path / "net.caffemodel").predict(rows)["pooled"]
        assert np.array_equal(np.stack(list(here)), np.float32(got))


def test_texts_that_are_missing(tokenizer, model, session):
    rows = [(0, "the cat"), (1, None), (2, "b")]
    data = session.createDataFrame(rows, "number int, text string")
    embed = SparkModel(model, tokenizer=tokenizer, columns=COLUMNS, pooling="mean")
    made = embed.transform(data, invalid="null", reason="why").orderBy("number").collect()
    assert [row.pooled is None for row in made] == [False, True, False]
    assert made[1].why == "column 'text' is null: fill such rows, or filter them out"
    want = by_hand(tokenizer, model, "b")["mean"]
    np.testing.assert_allclose(made[2].pooled, want, rtol=1e-4, atol=1e-5)
    dropped = embed.transform(data, invalid="drop").orderBy("number").collect()
    assert [row.number for row in dropped] == [0, 2]
    with pytest.raises(Exception, match="column 'text' is null"):
        embed.transform(data).collect()


def test_texts_longer_than_the_net_takes(tokenizer, model, session, tmp_path):
    made = tokenizers.Tokenizer.from_file(str(tokenizer))
    made.no_truncation()
    made.save(str(tmp_path / "whole.json"))
    rows = [(0, "the cat"), (1, "a " * 20), (2, "b")]
    data = session.createDataFrame(rows, "number int, text string").coalesce(1)
    embed = SparkModel(model, tokenizer=tmp_path / "whole.json", columns=COLUMNS, pooling="mean")
    found = embed.transform(data, invalid="null", reason="why").orderBy("number").collect()
    assert [row.pooled is None for row in found] == [False, True, False]
    says = "column 'text' has a text of 22 tokens, and the net takes 12 at most: the tokenizer"
    assert found[1].why.startswith(says)


def test_a_column_of_numbers(tokenizer, model, frame):
    embed = SparkModel(model, tokenizer=tokenizer, pooling="mean")
    says = "column 'number' of the data is of type int, and a tokenizer takes strings: cast it"
    with pytest.raises(SparkError, match=says):
        embed.transform(frame, columns={"input_ids": "number"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "is no tokenizer: "),
        (b"{}", "is no tokenizer: "),
        (b"\xff\xfe", "is no tokenizer: "),
        (json.dumps({"version": "1.0", "model": {"type": "BPE"}}).encode(), "is no tokenizer: "),
    ],
)
def test_files_that_are_no_tokenizer(text, says, model, tmp_path):
    (tmp_path / "odd.json").write_bytes(text)
    with pytest.raises(FileError, match=says):
        SparkModel(model, tokenizer=tmp_path / "odd.json")


def test_settings_that_do_not_fit(tokenizer, model, tmp_path):
    with pytest.raises(FileError, match="no such file"):
        SparkModel(model, tokenizer=tmp_path / "none.json")
    with pytest.raises(SpecError, match="pooling is of a net that takes texts: give tokenizer"):
        SparkModel(model, pooling="mean")
    with pytest.raises(SpecError, match="pooling is 'sum': one of mean, cls, max is needed"):
        SparkModel(model, tokenizer=tokenizer, pooling="sum")
    with pytest.raises(SpecError, match="pooled is 'logits': no blob of texts x tokens x numbers"):
        SparkModel(model, tokenizer=tokenizer, pooling="mean", pooled="logits")
    with pytest.raises(SpecError, match="pooled='x' is for pooling, which is not given"):
        SparkModel(model, tokenizer=tokenizer, pooled="x")


def test_without_the_package(tokenizer, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    says = r"a column of text needs the package 'tokenizers': run pip install 'sparknet\[text\]'"
    with pytest.raises(MissingExtra, match=says):
        SparkModel(model, tokenizer=tokenizer)


def test_a_net_of_one_length(tokenizer, model, frame, tmp_path):
    """Texts are padded to the only length that it takes."""
    made = onnx.load(str(model))
    for one in made.graph.input:
        one.type.tensor_type.shape.dim[1].dim_value = LONGEST
    more = [node("Reshape", "last_hidden_state rows", "r"), node("Gemm", "r flat", "fixed")]
    made.graph.node.extend(more)
    for name, value in (
        ("rows", np.array([-1, WIDTH * LONGEST])),
        ("flat", draw(WIDTH * LONGEST, 2, seed=5)),
    ):
        made.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    made.graph.output.append(onnx.helper.make_tensor_value_info("fixed", FLOAT, None))
    onnx.save(made, str(tmp_path / "fixed.onnx"))
    fixed = SparkModel(tmp_path / "fixed.onnx", tokenizer=tokenizer, columns=COLUMNS)
    encoding = tokenizers.Tokenizer.from_file(str(tokenizer))  # pads to the length, too
    want = []
    for text in TEXTS:
        tokens = encoding.encode(text)
        feeds = {
            "input_ids": np.array([tokens.ids]),
            "attention_mask": np.array([tokens.attention_mask]),
            "token_type_ids": np.array([tokens.type_ids]),
        }
        want.append(run(tmp_path / "fixed.onnx", feeds)["fixed"][0])
    got = collected(fixed.transform(frame, ["fixed"]), "fixed")
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
