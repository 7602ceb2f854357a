"""Models in a process without Spark: against what Spark makes of the same files."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark")

from pyspark.ml import Pipeline

import sparknet
from sparknet.errors import DataError, FileError, SparkError, SparkNetError, SpecError
from sparknet.net import Net
from sparknet.spark import SparkModel
from sparknet.spark.pipeline import NetEstimator, NetFeaturizer, NetModel, SequenceEncoder
from tests.goldens import ROOT
from tests.spark.test_stages import HEAD, SIDES, TAIL, labels, layer, points, scores, several

__all__ = ["points"]

PHOTOGRAPHS = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [4, 3, 12, 12] } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { pool: AVE global_pooling: true } }
layer { name: "prob" type: "Softmax" bottom: "pool" top: "prob" }
"""


def loss(kind: str, name: str = "ip") -> str:
    return layer("loss", kind, f"{name} label") + TAIL


STAGES = {
    "classes": (SIDES, "side"),
    "yes or no": (
        HEAD + labels("label", 1) + scores("ip", 1) + loss("SigmoidCrossEntropyLoss"),
        "right",
    ),
    "labels": (
        HEAD + labels("label", 3) + scores("ip", 3) + loss("SigmoidCrossEntropyLoss"),
        "tags",
    ),
    "numbers": (HEAD + labels("label", 1) + scores("ip", 1) + loss("EuclideanLoss"), "value"),
    "several": (several(), "side"),
}


def frame_of(data, *columns):
    rows = [[np.array(value) for value in row] for row in data.select(*columns).collect()]
    return pd.DataFrame(rows, columns=list(columns), index=range(100, 100 + len(rows)))


@pytest.mark.parametrize("kind", STAGES)
def test_a_stage_makes_the_columns_that_spark_makes(points, tmp_path, kind):
    solver, label = STAGES[kind]
    model = NetEstimator(solver, labelCol=label, workers=1, maxIter=5).fit(points)
    model.write().save(str(tmp_path / "stage"))
    predicted = model.transform(points).drop(*points.columns)
    found = sparknet.load(tmp_path / "stage").predict(frame_of(points, "features"))
    assert list(found.columns) == predicted.columns
    assert found.index[0] == 100
    for name in predicted.columns:
        for ours, row in zip(found[name], predicted.select(name).collect(), strict=True):
            wanted = row[0].toArray() if hasattr(row[0], "toArray") else np.array(row[0])
            assert np.array_equal(ours, wanted), (name, ours, wanted)


def test_a_stage_that_was_saved_without_spark_is_read_by_it(points, tmp_path):
    model = NetEstimator(SIDES, labelCol="side", workers=1, maxIter=5).fit(points)
    model.save_here(tmp_path / "stage")
    again = NetModel.load(str(tmp_path / "stage")).transform(points).select("probability")
    wanted = model.transform(points).select("probability").collect()
    assert again.collect() == wanted
    found = sparknet.load(tmp_path / "stage").predict(frame_of(points, "features"))
    assert np.array_equal(found["probability"][100], wanted[0].probability.toArray())


def test_a_featurizer_and_what_lies_around_it(points, tmp_path):
    model = NetEstimator(SIDES, labelCol="side", workers=1, maxIter=5).fit(points)
    featurizer = NetFeaturizer(model.model, inputCol="features", outputCol="deep", output="ip")
    pipeline = Pipeline(stages=[featurizer, SequenceEncoder(["a"], 2, inputCol="text")])
    pipeline.write().save(str(tmp_path / "pipeline"))
    with pytest.raises(FileError, match=r"is a Pipeline, .*load its stage.*stages/0_NetFeaturizer"):
        sparknet.load(tmp_path / "pipeline")
    (folder,) = (tmp_path / "pipeline" / "stages").glob("0_*")
    found = sparknet.load(folder).predict(frame_of(points, "features"))
    wanted = [row.deep.toArray() for row in featurizer.transform(points).select("deep").collect()]
    assert np.array_equal(np.stack(found["deep"]), np.stack(wanted))
    (other,) = (tmp_path / "pipeline" / "stages").glob("1_*")
    with pytest.raises(FileError, match="is a SequenceEncoder, and what is loaded is a NetModel"):
        sparknet.load(other)
    raw = sparknet.load(folder).predict(np.float32([[1, 2], [3, 4]]), ["ip"])
    assert raw["ip"].shape == (2, 3)


def test_rows_that_cannot_be_read_as_the_stage_says(points, tmp_path):
    model = NetEstimator(SIDES, labelCol="side", workers=1, maxIter=5).fit(points)
    rows = pd.DataFrame({"features": [[1.0, 2.0], None, [float("nan"), 1.0], [3.0, 4.0]]})
    for word in ("error", "keep", "skip"):
        model.setHandleInvalid(word)
        model.write().overwrite().save(str(tmp_path / word))
    with pytest.raises(SparkError, match=r"column 'features' is null: .* \(row 1\)"):
        sparknet.load(tmp_path / "error").predict(rows)
    kept = sparknet.load(tmp_path / "keep").predict(rows)
    assert np.isnan(kept["prediction"]).tolist() == [False, True, True, False]
    skipped = sparknet.load(tmp_path / "skip").predict(rows)
    assert skipped.index.tolist() == [0, 3]
    assert skipped["prediction"].tolist() == kept["prediction"][[0, 3]].tolist()


def test_a_stage_that_makes_a_column_twice(tmp_path):
    stage = NetModel(SparkModel(Net(PHOTOGRAPHS, seed=1)), predictionCol="prob")
    stage.save_here(tmp_path / "stage")
    with pytest.raises(SparkError, match="the stage makes two columns 'prob'"):
        sparknet.load(tmp_path / "stage").predict(np.zeros((1, 3, 12, 12)))


def test_a_stage_that_was_changed(points, tmp_path):
    NetModel(SparkModel(Net(PHOTOGRAPHS, seed=1))).write().save(str(tmp_path / "stage"))
    weights = tmp_path / "stage" / "weights.caffemodel"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(FileError, match="is damaged: it has another check sum"):
        sparknet.load(tmp_path / "stage")
    weights.unlink()
    with pytest.raises(FileError, match=r"weights.caffemodel: No such file"):
        sparknet.load(tmp_path / "stage")
    (metadata,) = (tmp_path / "stage" / "metadata").glob("part-*")
    said = json.loads(metadata.read_text())
    odd = [json.dumps({**said, "files": {name: {}}}) for name in ("../x", "..", ".")]
    for text in (*odd, "{", "[]", ""):
        metadata.write_text(text)
        with pytest.raises(FileError, match="is no saved stage"):
            sparknet.load(tmp_path / "stage")
    with pytest.raises(FileError, match="is no saved stage: it has no metadata"):
        sparknet.load(tmp_path)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("photographs")
    paths = [folder / f"{number}.png" for number in range(7)]
    for number, path in enumerate(paths):
        image.fromarray(rng.integers(0, 256, (20 + number, 31, 3), np.uint8)).save(path)
    return paths


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "net.caffemodel"
    model = SparkModel(Net(PHOTOGRAPHS, seed=1, preprocessing=None), columns={"data": "content"})
    model = SparkModel(
        PHOTOGRAPHS, model.net.get_weights(), columns={"data": "content"}, resize=16, crop=12
    )
    model.save(path)
    return path


def test_image_files_in_every_form(session, saved, photographs):
    contents = [path.read_bytes() for path in photographs]
    data = session.createDataFrame([(one,) for one in contents], "content binary").coalesce(1)
    options = {"top": 2, "labels": list("abcde"), "best": "class"}
    rows = SparkModel(saved).transform(data, ["prob"], **options).collect()
    loaded = sparknet.load(saved)
    frame = pd.DataFrame({"content": contents})
    for given in (frame, {"content": contents}, contents, photographs, list(map(str, photographs))):
        found = loaded.predict(given, ["prob"], **options)
        assert list(found["class"]) == [row["class"] for row in rows]
        assert found["class"].dtype == np.int64
        assert list(found["prob"]) == [[one.asDict() for one in row.prob] for row in rows]
    plain = SparkModel(saved).transform(data, ["prob"]).collect()
    every = loaded.predict(photographs, ["prob"])["prob"]
    assert every.shape == (7, 5, 1, 1)
    assert np.array_equal(every.reshape(7, 5), np.float32([row.prob for row in plain]))
    assert np.array_equal(loaded.predict(photographs[2], ["prob"])["prob"], every[2:3])
    told = loaded.predict([*contents[:2], b"none"], invalid="null", reason="why")
    assert np.isnan(told["prob"]).all((1, 2, 3)).tolist() == [False, False, True]
    assert told["why"][:2] == [None, None]
    assert "no image" in told["why"][2]
    dropped = loaded.predict(frame.assign(content=[None, *contents[1:]]), invalid="drop")
    assert dropped.index.tolist() == [1, 2, 3, 4, 5, 6]


def test_arrays(saved):
    net = Net(PHOTOGRAPHS, seed=1)
    values = np.random.default_rng(0).random((9, 3, 12, 12), np.float32)
    loaded = sparknet.load(net)
    wanted = [net.forward({"data": values[at : at + 1]})["prob"][0] for at in range(9)]
    for given in (values, list(values), {"data": values}, pd.DataFrame({"data": list(values)})):
        found = np.stack(list(loaded.predict(given, ["prob"], batch=4)["prob"]))
        np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-5)
    assert loaded.predict(values[:0])["prob"].shape == (0, 5, 1, 1)
    assert loaded.predict(values, ["prob", "conv"])["conv"].shape == (9, 5, 10, 10)


@pytest.mark.parametrize("options", [{}, {"best": "class"}, {"outputs": ["conv", "prob"]}])
def test_arrays_of_the_nets_own_shape_need_no_arrow(options, monkeypatch):
    """Lists of arrays go through Arrow, and all bits of the results are the same."""
    loaded = sparknet.load(Net(PHOTOGRAPHS, seed=1))
    values = np.random.default_rng(0).random((9, 3, 12, 12), np.float32)
    wanted = loaded.predict(list(values), **options)
    monkeypatch.setattr("sparknet.predict.loaded.batch_of", None)
    for rows in (values, values.astype(np.float64), {"data": values}):
        found = loaded.predict(rows, **options)
        assert found.keys() == wanted.keys()
        for name, column in wanted.items():
            assert (found[name].dtype, found[name].shape) == (column.dtype, column.shape)
            assert np.array_equal(found[name], column)
            assert found[name].flags.owndata


def test_rows_without_a_value_and_results_of_ones_own():
    text = HEAD.removeprefix("net_param { ") + scores("ip", 3)
    loaded = sparknet.load(Net(text, seed=1))
    rows = [np.ones(2), float("nan"), None, np.zeros(2)]  # pandas has NaN beside arrays
    for given in (rows, pd.DataFrame({"data": rows}), [[1.0, 1.0], None, float("nan"), [0.0, 0.0]]):
        with pytest.raises(SparkError, match=r"column 'data' is null: .* \(row 1\)"):
            loaded.predict(given)
        found = np.stack(list(loaded.predict(given, invalid="null")["ip"]))
        assert np.isnan(found).all(1).tolist() == [False, True, True, False]
    made = loaded.predict(np.ones((2, 2)))["ip"]
    kept = made.copy()
    made *= 2  # not the net's memory, and not read-only
    assert np.array_equal(loaded.predict(np.ones((2, 2)))["ip"], kept)


WRONG = {
    "one record": (np.zeros((3, 12, 12), np.float32), r"the first axis is that of the rows"),
    "axes": (np.zeros((1, 12, 12, 3), np.float32), r"rows of the shape \(12, 12, 3\), and the net"),
    "a number": (3, "is int: an array, a list"),
    "no such file": ("nothing.png", "nothing.png: no such file"),
    "a column": ({"b": [b""]}, r"have no column 'data' .* columns=\{'data'"),
    "shapes": ([np.zeros((3, 12, 12)), np.zeros((3, 2, 12))], "rows of the shapes"),
    "kinds": ([b"x", 3.0], "holds values of no one kind"),
    "a path and a number": (["a.png", 3], "a.png"),
    "not finite": (np.full((2, 3, 12, 12), np.nan), r"holds nan, .* \(row 0\)"),
    "a long row": (np.zeros((2, 7)), "has 7 values per row, but the net takes"),
    "all numbers of a record": (np.zeros(432), "one record is a batch of one, such as x.None"),
    "nothing in a row": (np.zeros((2, 0)), "without any number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_fit_no_net(name):
    rows, said = WRONG[name]
    loaded = sparknet.load(Net(PHOTOGRAPHS, seed=1))
    with pytest.raises(SparkNetError, match=said):
        loaded.predict(rows)


def test_what_is_no_model(tmp_path, saved):
    with pytest.raises(SparkError, match="predict has no keyword 'bacth'; did you mean 'batch'"):
        sparknet.load(saved).predict([b""], bacth=3)
    (tmp_path / "x.h5").write_bytes(b"\x89HDF")
    (tmp_path / "x.pth").write_bytes(b"PK\x03\x04 of torch.save")
    for name, said in {
        ".": "is no saved stage: it has no metadata, and no model.json as a saved model has",
        "x.h5": "holds weights without their net: .*x.prototxt is missing",
        "x.pth": "is an archive, as torch.save and numpy.savez write: a net is a prototxt",
    }.items():
        with pytest.raises(SparkNetError, match=said):
            sparknet.load(tmp_path / name)
    with pytest.raises(SpecError, match="weights are list: a WeightCollection is needed"):
        Net(PHOTOGRAPHS, seed=1).set_weights([1, 2])


def test_what_is_given_twice(saved):
    model = SparkModel(saved)
    with pytest.raises(SparkError, match="a SparkModel has its weights already"):
        sparknet.load(model, "w.caffemodel")
    with pytest.raises(SparkError, match="prefix and best"):
        sparknet.load(model).predict([b""], best=3)
    two = HEAD.removeprefix("net_param { ") + labels("more", 2)
    both = sparknet.load(Net(two + layer("sum", "Eltwise", "data more"), seed=1))
    with pytest.raises(DataError, match=r"inputs \['data', 'more'\]: give a data frame"):
        both.predict(np.zeros((2, 2)))
    with pytest.raises(DataError, match="differ in their number of rows: 'data' 2, 'more' 3"):
        both.predict({"data": np.zeros((2, 2)), "more": np.zeros((3, 2))})
    made = both.predict({"data": np.ones((2, 2)), "more": np.ones((2, 2))})
    assert made["sum"].tolist() == [[2, 2], [2, 2]]


def test_several_threads(saved, photographs):
    loaded = sparknet.load(saved)
    wanted = loaded.predict(photographs)["prob"]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda at: loaded.predict(photographs[at])["prob"], [*range(7)] * 20))
    assert np.array_equal(np.concatenate(found), np.concatenate([wanted] * 20))


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pandas", "py4j"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import numpy as np
import sparknet
for path in sys.argv[1:3]:
    made = sparknet.load(path).predict(sys.argv[3:])
    print(sorted(made), float(np.ravel(made[sorted(made)[-1]])[0]))
"""


def test_without_pyspark_and_pandas(session, saved, photographs, tmp_path):
    NetModel(SparkModel(saved), predictionCol="z").write().save(str(tmp_path / "stage"))
    words = [sys.executable, "-c", WITHOUT, saved, tmp_path / "stage", *photographs]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    first = sparknet.load(saved).predict(photographs)["prob"].ravel()
    assert done.stdout.splitlines()[0] == f"['prob'] {float(first[0])}"
    assert done.stdout.splitlines()[1] == f"['prob', 'z'] {float(first[:5].argmax())}"


def test_in_a_users_own_function(session):
    """A loaded model and a Net go to Spark's tasks in what mapInPandas sends."""
    net = Net(HEAD.removeprefix("net_param { ") + scores("ip", 2), seed=1)
    loaded, places = sparknet.load(net), [[float(n), 1.0] for n in range(6)]

    def both(frames):
        for frame in frames:
            rows = np.stack(list(frame.x)).astype(np.float32)
            made = loaded.predict({"data": rows})["ip"], net.forward({"data": rows})["ip"]
            yield pd.DataFrame({"load": made[0][:, 0], "net": made[1][:, 0]})

    data = session.createDataFrame([(place,) for place in places], "x array<double>").coalesce(1)
    found = data.mapInPandas(both, "load float, net float").toPandas()
    expected = net.forward({"data": np.float32(places)})["ip"][:, 0]
    np.testing.assert_allclose(found.load, expected, rtol=1e-6)
    np.testing.assert_allclose(found.net, expected, rtol=1e-6)


def test_a_featurizer_needs_weights():
    with pytest.raises(SpecError, match="random=True"):
        NetFeaturizer(HEAD.removeprefix("net_param { ") + scores("ip", 2))
