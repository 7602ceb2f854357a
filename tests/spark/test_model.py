"""A net that predicts columns of a DataFrame, of a classic session or of Spark Connect."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyspark")

import pyspark.util
from pyspark.errors import PythonException

from sparknet.errors import FileError, SparkError, SpecError
from sparknet.net import Net
from sparknet.spark import SparkModel
from sparknet.spark.filesystem.broadcast import _folder, send
from tests.spark.conftest import null_in_list
from tests.spark.digits import NET, records, solver

HIDES = "SPARK_HIDE_TRACEBACK" in Path(pyspark.util.__file__).read_text()
"""Whether this PySpark can leave tracebacks out; 3.5 puts them before the sentence."""
COUNT = 103
COLUMNS = {"data": "pixels"}


@pytest.fixture(scope="module")
def frame(session):
    """Ragged parts, in no order: each row knows its number."""
    images, labels = records(COUNT)
    rows = [
        (number, image.tobytes(), int(label))
        for number, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    return session.createDataFrame(rows, "number int, pixels binary, digit int").repartition(3)


def column(data, name):
    rows = sorted(data.select("number", name).collect())
    assert [row[0] for row in rows] == list(range(COUNT))
    return np.array([row[1] for row in rows], np.float32)


def expected(net, name, scale=1):
    return net.forward({"data": records(COUNT)[0] * np.float32(scale)}, [name])[name]


def test_values_are_those_of_forward(frame):
    net = Net(solver())
    predicted = SparkModel(net).transform(frame, ["ip", "conv"], columns=COLUMNS, best="class")
    assert predicted.columns == ["number", "pixels", "digit", "ip", "conv", "class"]
    scores = expected(net, "ip")
    np.testing.assert_allclose(column(predicted, "ip"), scores, rtol=1e-5, atol=1e-4)
    flat = expected(net, "conv").reshape(COUNT, -1)
    np.testing.assert_allclose(column(predicted, "conv"), flat, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(column(predicted, "class"), scores.argmax(1))


def test_models_that_are_no_longer_needed_leave_no_files(spark, frame):
    from pyspark import SparkFiles

    def files() -> set[Path]:
        roots = (Path(SparkFiles.getRootDirectory()), Path(_folder().name))
        return {path for root in roots for path in root.glob("sparknet-*.weights")}

    before, rows = files(), frame.limit(1)
    for seed in (101, 102, 103):
        model = SparkModel(Net(NET, seed=seed))
        model.transform(rows, ["ip"], columns=COLUMNS).collect()
        assert len(files() - before) == 2
        model.unpersist()
        assert files() == before
    first = model.transform(rows, ["ip"], columns=COLUMNS).collect()  # sent again
    assert len(first) == 1
    model.unpersist()


@pytest.mark.parametrize("kind", ["tuples", "dicts", "inputs", "values"])
def test_an_rdd(spark, kind):
    images, labels = records(COUNT)
    rows = {
        "tuples": [*zip(images, labels, strict=True)],
        "dicts": [
            {"label": int(label), "data": x} for x, label in zip(images, labels, strict=True)
        ],
        "inputs": [(image,) for image in images],
        "values": list(images),
    }[kind]
    net = Net(solver())
    model, rdd = SparkModel(net), spark.sparkContext.parallelize(rows, 2)
    found = model.transform(rdd, ["ip"], best="class")
    assert {"data", "ip", "class"} <= set(found.columns)
    made = np.array([row.ip for row in found.collect()])
    np.testing.assert_allclose(made, expected(net, "ip"), rtol=1e-5, atol=1e-4)
    if kind == "dicts":
        assert model.evaluate(rdd).rows == COUNT
        assert model.evaluate(rdd).accuracy == (made.argmax(1) == labels).mean()


def test_what_only_the_loss_reads_is_not_asked_for(frame):
    predicted = SparkModel(Net(solver())).transform(frame, columns=COLUMNS, prefix="my_", batch=7)
    assert predicted.schema["my_ip"].simpleString() == "my_ip:array<float>"
    assert predicted.columns == [*frame.columns, "my_ip"]


def test_one_value_a_record_is_a_number_through_its_transform(frame, tmp_path):
    net = """layer { name: "data" type: "MemoryData" top: "data" top: "label"
        transform_param { scale: 0.5 mean_file: "MEAN" }
        memory_data_param { batch_size: 4 channels: 1 height: 6 width: 6 } }
      layer { name: "score" type: "InnerProduct" bottom: "data" top: "score"
        inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "score" bottom: "label" top: "loss" }"""
    from sparknet.proto import write_blob

    write_blob(tmp_path / "mean", np.full((1, 1, 6, 6), 8, np.float32))
    model = SparkModel(net.replace("MEAN", str(tmp_path / "mean")), random=True)
    predicted = model.transform(frame, columns=COLUMNS)
    assert predicted.schema["score"].simpleString() == "score:float"
    found = column(predicted, "score")
    weights, bias = (np.asarray(blob.data) for blob in model.net.net.params["score"])
    pixels = records(COUNT)[0].reshape(COUNT, -1).astype(np.float32)
    np.testing.assert_allclose(found, ((pixels - 8) / 2) @ weights[0] + bias[0], atol=1e-4)


def test_files_of_stopped_sessions_go():
    def session():
        context = SimpleNamespace(_jsc=object(), addFile=lambda path: None)
        return FakeSession(_jsparkSession=None, sparkContext=context)

    class FakeSession(SimpleNamespace):
        __hash__ = object.__hash__

    first, second = session(), session()
    for one, name in ((first, "a.weights"), (first, "b.weights"), (second, "b.weights")):
        send(one, name, lambda path: path.write_bytes(b"weights"))
    first.sparkContext._jsc = None
    send(second, "c.weights", lambda path: path.write_bytes(b"weights"))
    kept = [(Path(_folder().name) / f"{name}.weights").exists() for name in "abc"]
    assert kept == [False, True, True]
    second.sparkContext._jsc = None


def test_a_net_of_the_user_is_not_overwritten(tmp_path):
    (tmp_path / "x.prototxt").write_text("name: 'mine'")
    model = SparkModel(Net(solver()))
    with pytest.raises(FileError, match=r"x.prototxt: is no saved model's and would be overwritt"):
        model.save(tmp_path / "x.caffemodel")
    assert [file.name for file in tmp_path.iterdir()] == ["x.prototxt"]
    model.save(tmp_path / "y.caffemodel")
    model.save(tmp_path / "y.caffemodel")


def test_a_caffemodel_is_enough(frame, tmp_path):
    net = Net(solver())
    SparkModel(net).save(tmp_path / "digits.caffemodel")
    scores = expected(net, "ip")
    for model in (
        SparkModel(tmp_path / "digits.caffemodel"),
        SparkModel(tmp_path / "digits.prototxt", tmp_path / "digits.caffemodel"),
    ):
        found = column(model.transform(frame, columns=COLUMNS), "ip")
        np.testing.assert_allclose(found, scores, rtol=1e-5, atol=1e-4)


def test_changed_weights_are_sent_again(frame):
    net = Net(solver())
    model = SparkModel(net)
    before = model.transform(frame, columns=COLUMNS)
    old = expected(net, "ip")
    net.set_weights(net.get_weights() * 2)
    after = model.transform(frame, columns=COLUMNS)
    np.testing.assert_allclose(column(before, "ip"), old, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(column(after, "ip"), expected(net, "ip"), rtol=1e-5, atol=1e-4)


FLAT = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 } } }
layer { name: "root" type: "Power" bottom: "x" top: "root" power_param { power: 0.5 } }
layer { name: "prob" type: "Softmax" bottom: "root" top: "prob" }
"""
RIGHT = [4.0, 1.0, 0.0]


def last_words(data):
    """What a worker raised, in one line between Spark's own words, which depend on the session."""
    with pytest.raises(PythonException) as raised:
        data.collect()
    lines = [line for line in str(raised.value).splitlines() if line.strip()]
    assert "An exception was thrown from the Python worker" in lines[0]
    if lines[-1].startswith(" SQLSTATE"):
        lines.pop()
    assert len(lines) == 2 or not HIDES, lines
    _, own, said = lines[-1].partition("sparknet.errors.")
    return own + said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([4.0, float("nan"), 0.0], "SparkError: column 'x' holds nan, no number of float32: "),
        ([4.0, float("-inf"), 0.0], "SparkError: column 'x' holds -inf, no number of float32: "),
        ([4.0, 1e300, 0.0], "SparkError: column 'x' holds 1e+300, no number of float32: "),
        ([-4.0, 1.0, 0.0], "SparkError: blob 'prob' became nan, though its record has finite "),
        (None, "SparkError: column 'x' is null: "),
        ([4.0, None, 0.0], None),
        ([4.0, 1.0], "column 'x' has 2 values per row, but the net takes (3,) "),
    ],
)
def test_no_class_is_made_of_nothing(session, wrong, said):
    rows = [(RIGHT,)] * 9 + [(wrong,)] + [(RIGHT,)] * 4
    data = session.createDataFrame(rows, "x array<double>").coalesce(1)
    found = last_words(SparkModel(FLAT, random=True).transform(data, best="guess"))
    assert (said or null_in_list("x")) in found
    assert found.startswith("sparknet.errors.SparkError: ")
    assert found.endswith(" (partition 0, row 9)")


def test_a_record_that_no_net_can_read_is_told_in_one_line(session, frame):
    data = frame.where("number < 30").coalesce(1).sortWithinPartitions("number")
    wrong = data.selectExpr("number", "if(number = 25, X'00', pixels) AS pixels")
    found = last_words(SparkModel(Net(solver())).transform(wrong, columns=COLUMNS))
    said = "column 'pixels': is no image that can be read (partition 0, row 25)"
    assert found == f"sparknet.errors.FileError: {said}"


def test_a_worker_keeps_the_net_between_jobs(session, frame):
    SparkModel(Net(solver())).transform(frame, columns=COLUMNS).collect()

    def look(batches):
        import sys

        import pyarrow as pa

        for _ in batches:
            keys = getattr(sys.modules.get("sparknet.predict.worker_cache"), "_store", ())
            nets = sum(isinstance(key, tuple) and "weights" in str(key[0]) for key in keys)
            yield pa.RecordBatch.from_pydict({"nets": pa.array([nets], pa.int32())})

    found = session.range(0, 4, 1, 4).mapInArrow(look, "nets int").collect()
    assert max(row.nets for row in found) >= 1


def test_what_cannot_be_predicted(session, frame):
    model = SparkModel(Net(solver()))
    with pytest.raises(SpecError, match="has no keyword 'invalid': give it to transform"):
        SparkModel(Net(solver()), invalid="null")
    with pytest.raises(SparkError, match=r"no column 'data' for the net's input 'data'.*columns="):
        model.transform(frame)
    with pytest.raises(SparkError, match=r"columns names 'image', but the net's inputs are"):
        model.transform(frame, columns={"image": "pixels"})
    with pytest.raises(SpecError, match=r"no blob 'accurac'.*'accuracy'"):
        model.transform(frame, ["accurac"])
    with pytest.raises(
        SparkError, match=r"blob 'loss' is \(\): it has no row for each of 20 records"
    ):
        model.transform(frame, ["loss"], columns={"data": "pixels", "label": "digit"})
    with pytest.raises(SparkError, match="has a column 'ip' already: give prefix"):
        model.transform(frame.withColumnRenamed("digit", "ip"), columns=COLUMNS)
    with pytest.raises(SparkError, match="outputs is 'ip': a list"):
        model.transform(frame, "ip")
    with pytest.raises(SparkError, match="the data is a list: a DataFrame of Spark is needed"):
        model.transform([(0, b"", 1)])
    with pytest.raises(SparkError, match="names, not '' and True"):
        model.transform(frame, columns=COLUMNS, best=True)
    with pytest.raises(SparkError, match="column 'name' of the data is of type string"):
        model.transform(frame.selectExpr("'x' AS name"), columns={"data": "name"})
    with pytest.raises(SparkError, match="batch is -1"):
        model.transform(frame, columns=COLUMNS, batch=-1)
    with pytest.raises(SpecError, match="this Net has weights already"):
        SparkModel(Net(NET), Net(NET).get_weights())
