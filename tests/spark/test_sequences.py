"""SequenceEncoder: strings as ids and continuation markers, as recurrent layers want them."""

import pytest

pytest.importorskip("pyspark")

from sparknet.errors import SparkError
from sparknet.spark.pipeline import NetEstimator, SequenceEncoder


@pytest.fixture(scope="module")
def texts(session):
    rows = [(0, "the cat sat"), (1, " The  dog "), (2, ""), (3, None), (4, "a b c d the cat")]
    return session.createDataFrame(rows, "id int, text string").coalesce(1)


def encoded(texts, **params):
    made = SequenceEncoder(["the", "cat", "dog"], 4, **params).transform(texts)
    return [(row.ids, row.cont) for row in made.orderBy("id").collect()]


def test_ids_and_markers(texts):
    """0 is padding, 1 another token; the first token of a row does not go on from another one."""
    assert encoded(texts) == [
        ([2, 3, 1, 0], [0, 1, 1, 0]),
        ([1, 4, 0, 0], [0, 1, 0, 0]),
        ([0, 0, 0, 0], [0, 0, 0, 0]),
        ([0, 0, 0, 0], [0, 0, 0, 0]),
        ([1, 1, 1, 1], [0, 1, 1, 1]),
    ]


def test_padding_before_and_case(texts):
    assert encoded(texts, padding="before", lower=True)[:3] == [
        ([0, 2, 3, 1], [0, 0, 1, 1]),
        ([0, 0, 2, 4], [0, 0, 0, 1]),
        ([0, 0, 0, 0], [0, 0, 0, 0]),
    ]


def test_characters_and_arrays(texts):
    letters = SequenceEncoder(list("cat"), 3, split="", outputCol="letters", contCol="on")
    row = letters.transform(texts.where("id = 0")).head()
    assert (row.letters, row.on) == ([4, 1, 1], [0, 1, 1])
    arrays = texts.selectExpr("id", "split('x,cat', ',') AS words")
    made = SequenceEncoder(["cat"], 2, inputCol="words").transform(arrays)
    assert made.head().ids == [1, 2]


def test_a_vocabulary_from_a_column(texts):
    assert SequenceEncoder.build_vocabulary(texts, "text", lower=True, least=2) == ["the", "cat"]
    assert SequenceEncoder.build_vocabulary(texts, "text", size=3) == ["cat", "the", "The"]


def test_it_is_read_again(texts, tmp_path):
    encoder = SequenceEncoder(["the", "cat"], 3, padding="before", outputCol="numbers")
    encoder.write().overwrite().save(str(tmp_path / "encoder"))
    again = SequenceEncoder.load(str(tmp_path / "encoder"))
    assert again.size == 4
    assert again.transform(texts).collect() == encoder.transform(texts).collect()


NET = """net_param { name: "words"
  layer { name: "in" type: "Input" top: "ids" top: "cont" input_param {
    shape { dim: [4, 10] } shape { dim: [4, 10] } } }
  layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 10 } } }
  layer { name: "word" type: "Embed" bottom: "ids" top: "word" embed_param {
    input_dim: 5 num_output: 4 weight_filler { type: "uniform" min: -1 max: 1 } } }
  layer { name: "lstm" type: "LSTM" bottom: "word" bottom: "cont" top: "lstm"
    recurrent_param { num_output: 4 weight_filler { type: "uniform" min: -0.5 max: 0.5 } } }
  layer { name: "cut" type: "Slice" bottom: "lstm" top: "first" top: "last"
    slice_param { axis: 0 slice_point: 3 } }
  layer { name: "quiet" type: "Silence" bottom: "first" }
  layer { name: "ip" type: "InnerProduct" bottom: "last" top: "ip" inner_product_param {
    num_output: 2 axis: 2 weight_filler { type: "xavier" } } }
  layer { name: "flat" type: "Reshape" bottom: "ip" top: "flat"
    reshape_param { shape { dim: [-1, 2] } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "flat" bottom: "label" top: "loss" } }
  base_lr: 0.5 momentum: 0.9 lr_policy: "fixed" random_seed: 1"""


def test_an_lstm_reads_it(session):
    """Which of two words comes last: time is the first axis of the net's inputs."""
    rows = [("cat dog", 0), ("dog cat", 1), ("the cat dog", 0), ("the dog cat", 1)] * 5
    data = session.createDataFrame(rows, "text string, label int")
    coded = SequenceEncoder(["the", "cat", "dog"], 4, padding="before").transform(data)
    estimator = NetEstimator(NET, featuresCol="ids", maxIter=60, workers=1)
    model = estimator.fit(coded)
    assert model.transform(coded).where("prediction = label").count() == len(rows)
    assert model.evaluate(coded).confusion.tolist() == [[10, 0], [0, 10]]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"length": None}, "length is None: a whole number"),
        ({"vocabulary": None}, r"has no vocabulary: SequenceEncoder\(\["),
        ({"padding": "left"}, "padding is 'left': after or before"),
        ({"inputCol": "txt"}, "no column 'txt' to encode; did you mean 'text'"),
        ({"inputCol": "id"}, "column 'id' has type int: strings are needed"),
        ({"split": "("}, r"split is '\(', no regular expression"),
        ({"outputCol": "id"}, "the data has a column 'id' already"),
    ],
)
def test_what_it_refuses(texts, params, said):
    given = {"vocabulary": ["a"], "length": 2, **params}
    with pytest.raises(SparkError, match=said):
        SequenceEncoder(**given).transform(texts)
