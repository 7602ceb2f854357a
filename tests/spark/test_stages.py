"""Stages beside pyspark.ml's own: its evaluators, grids and pipelines, and models read again."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import (
    BinaryClassificationEvaluator,
    MulticlassClassificationEvaluator,
    MultilabelClassificationEvaluator,
    RegressionEvaluator,
)
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.ml.tuning import (
    CrossValidator,
    CrossValidatorModel,
    ParamGridBuilder,
    TrainValidationSplit,
    TrainValidationSplitModel,
)

from sparknet.dsl import SolverParams
from sparknet.errors import FileError, LayerError, SparkError, SparkNetError
from sparknet.net import Net
from sparknet.net.model_folder import check_sum
from sparknet.proto import parse_solver, write_blob
from sparknet.spark import SparkModel
from sparknet.spark.pipeline import NetEstimator, NetFeaturizer, NetModel
from sparknet.training import SlowMo
from tests.spark.conftest import CONNECT, REMOTE

HEAD = """net_param { name: "points" layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: [10, 2] } } }"""
TAIL = '} base_lr: 0.2 momentum: 0.9 lr_policy: "fixed" random_seed: 1 max_iter: 40'


def labels(name: str, *record: int) -> str:
    shape = ", ".join(map(str, (10, *record)))
    return f"""layer {{ name: "{name}" type: "Input" top: "{name}"
      input_param {{ shape {{ dim: [{shape}] }} }} }}"""


def layer(name: str, kind: str, bottoms: str, more: str = "") -> str:
    bottom = " ".join(f'bottom: "{one}"' for one in bottoms.split())
    return f'layer {{ name: "{name}" type: "{kind}" {bottom} top: "{name}" {more} }}'


def scores(name: str, outputs: int) -> str:
    filler = 'weight_filler { type: "xavier" }'
    return layer(
        name, "InnerProduct", "data", f"inner_product_param {{ num_output: {outputs} {filler} }}"
    )


SIDES = HEAD + labels("label") + scores("ip", 3) + layer("loss", "SoftmaxWithLoss", "ip label")
SIDES += TAIL


@pytest.fixture(scope="module")
def points(session):
    found = np.random.default_rng(0).normal(size=(200, 2))
    rows = [
        (
            float(x),
            float(y),
            int(x > y) + int(x > y + 1),
            int(x > 0),
            float(2 * x - y + 1),
            [float(x > 0), float(y > 0), float(x > y)],
            [index for index, holds in enumerate((x > 0, y > 0, x > y)) if holds],
            number % 4 == 0,
        )
        for number, (x, y) in enumerate(found)
    ]
    schema = (
        "x double, y double, side int, right int, value double, tags array<double>, "
        "names array<double>, held boolean"
    )
    flat = session.createDataFrame([(*r[:6], [float(n) for n in r[6]], r[7]) for r in rows], schema)
    return VectorAssembler(inputCols=["x", "y"], outputCol="features").transform(flat).cache()


OUTPUTS = ["rawPrediction", "probability", "prediction"]


def sides(**params):
    return NetEstimator(SIDES, labelCol="side", workers=1, **params)


def test_a_classifier_as_pyspark_has_them(points):
    model = sides(validationIndicatorCol="held", maxIter=60).fit(points)
    predicted = model.transform(points)
    assert predicted.columns[len(points.columns) :] == OUTPUTS
    kinds = [field.dataType for field in predicted.schema.fields[-3:]]
    assert kinds[:2] == [VectorUDT(), VectorUDT()]
    assert kinds[2].typeName() == "double"
    judge = MulticlassClassificationEvaluator(labelCol="side", metricName="accuracy")
    accuracy = judge.evaluate(predicted)
    assert accuracy > 0.9
    row = predicted.head()
    logits = np.array(row.rawPrediction)
    chances = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(row.probability, chances, rtol=1e-5)
    assert row.prediction == logits.argmax()

    found = model.evaluate(points)
    assert found.accuracy == pytest.approx(accuracy)
    pairs = [(r.side, int(r.prediction)) for r in predicted.select("side", "prediction").collect()]
    expected = np.zeros((3, 3), int)
    for pair in pairs:
        expected[pair] += 1
    assert found.confusion.tolist() == expected.tolist()
    assert found.recall == pytest.approx(np.diag(expected) / expected.sum(1))
    assert found.precision == pytest.approx(np.diag(expected) / expected.sum(0))
    either = expected.sum(0) + expected.sum(1) - np.diag(expected)
    assert found.iou == pytest.approx(np.diag(expected) / either)
    assert found.mean_iou == pytest.approx(np.mean(np.diag(expected) / either))

    summary = model.summary
    assert summary.totalIterations == 60
    assert summary.objectiveHistory[-1] < summary.objectiveHistory[0]
    assert {event["event"] for event in summary.events} >= {"start", "round", "stop"}
    assert summary.metrics == summary.validationHistory[-1]


def test_yes_or_no_of_one_score(points):
    net = HEAD + labels("label", 1) + scores("ip", 1)
    net += layer("loss", "SigmoidCrossEntropyLoss", "ip label") + TAIL
    predicted = NetEstimator(net, labelCol="right", workers=1).fit(points).transform(points)
    judge = BinaryClassificationEvaluator(labelCol="right")
    assert judge.evaluate(predicted) > 0.99
    row = predicted.head()
    assert row.rawPrediction[0] == -row.rawPrediction[1]
    assert row.probability[1] == pytest.approx(1 / (1 + np.exp(-row.rawPrediction[1])), rel=1e-5)
    assert row.prediction == float(row.rawPrediction[1] > 0)


def test_labels_beside_each_other(points):
    net = HEAD + labels("label", 3) + scores("ip", 3)
    net += layer("loss", "SigmoidCrossEntropyLoss", "ip label") + TAIL
    model = NetEstimator(net, labelCol="tags", workers=1, base_lr=2.0).fit(points)
    judge = MultilabelClassificationEvaluator(labelCol="names", metricName="subsetAccuracy")
    predicted = model.transform(points)
    assert judge.evaluate(predicted) > 0.8
    found = model.evaluate(points)
    assert found.confusion.shape == (3, 2, 2)
    assert found.accuracy > 0.9
    rows = predicted.select("names", "prediction").collect()
    hits = sum(1.0 in row.names and 1.0 in row.prediction for row in rows)
    assert found.recall[1] == hits / sum(1.0 in row.names for row in rows)
    assert found.precision[1] == hits / sum(1.0 in row.prediction for row in rows)


def test_numbers(points):
    net = HEAD + labels("label", 1) + scores("ip", 1)
    net += layer("loss", "EuclideanLoss", "ip label") + TAIL
    model = NetEstimator(net, labelCol="value", workers=1, maxIter=100, base_lr=0.1).fit(points)
    predicted = model.transform(points)
    assert predicted.columns[-1] == "prediction"
    assert "rawPrediction" not in predicted.columns
    found = model.evaluate(points)
    for name in ("r2", "mae", "rmse"):
        judge = RegressionEvaluator(labelCol="value", metricName=name)
        assert getattr(found, name) == pytest.approx(judge.evaluate(predicted), abs=1e-5)
    assert found.r2 > 0.99


def several() -> str:
    net = HEAD + labels("side") + labels("value", 1) + scores("which", 3) + scores("amount", 1)
    net += layer("loss", "SoftmaxWithLoss", "which side")
    return net + layer("distance", "EuclideanLoss", "amount value") + TAIL


def test_a_net_with_several_outputs(points):
    model = NetEstimator(several(), workers=1, maxIter=100, base_lr=0.05, labelCol="side").fit(
        points
    )
    predicted = model.transform(points)
    assert predicted.columns[len(points.columns) :] == [*OUTPUTS, "prediction_amount"]
    found = model.evaluate(points)
    judge = MulticlassClassificationEvaluator(labelCol="side", metricName="accuracy")
    assert found.accuracy == pytest.approx(judge.evaluate(predicted))
    number = RegressionEvaluator(labelCol="value", predictionCol="prediction_amount")
    assert found.others["amount"].rmse == pytest.approx(number.evaluate(predicted), abs=1e-5)
    other = NetModel(
        model.model, outputs=["amount"], predictionCol="p", columns={"data": "features"}
    )
    assert other.transform(points).columns[-2:] == ["amount", "p"]


def test_settings_by_keyword_setter_and_grid(points):
    plain = NetEstimator(SIDES, base_lr=0.1)
    assert plain.getLearningRate() == plain.getBaseLr() == 0.1
    changed = plain.setLearningRate(0.3).setWeightDecay(0.01).setLrPolicy("step").setStepsize(5)
    assert changed is plain
    plain.setParams(gamma=0.5, batchSize=20, clip_gradients=5.0, seed=4)
    solver = plain.trainer.solver
    assert solver.base_lr == pytest.approx(0.3)
    assert solver.weight_decay == pytest.approx(0.01)
    assert (solver.lr_policy, solver.stepsize, solver.gamma) == ("step", 5, 0.5)
    assert Net(solver).batch_size == 20
    assert plain.trainer.seed == 4
    assert plain.base_lr == plain.learningRate
    assert plain.steps == plain.maxIter
    other = plain.copy({plain.momentum: 0.5})
    assert (other.getMomentum(), plain.getMomentum()) == (0.5, None)
    text = plain.explainParams()
    assert "learningRate: the learning rate; the solver's unless set (current: 0.3)" in text
    assert text.count("learning rate; ") == 1
    assert "featuresCol: the column of the net's first input (default: features)" in text
    with pytest.raises(SparkError, match="'nothing'"):
        NetEstimator(SIDES, columns={"data": "nothing"}).fit(points)


@pytest.mark.slow
def test_cross_validation_over_rate_and_strategy(points, tmp_path):
    plain = NetEstimator(SIDES, labelCol="side", workers=2, maxIter=30)
    grid = (
        ParamGridBuilder()
        .addGrid(plain.base_lr, [1e-7, 0.2])
        .addGrid(plain.strategy, ["averaging", SlowMo(steps=5)])
        .build()
    )
    judge = MulticlassClassificationEvaluator(labelCol="side", metricName="accuracy")
    search = CrossValidator(
        estimator=plain, estimatorParamMaps=grid, evaluator=judge, numFolds=2, seed=1
    )
    found = search.fit(points)
    metrics = np.array(found.avgMetrics).reshape(2, 2)
    assert metrics[1].min() > 0.85
    assert metrics[0].max() < metrics[1].min()
    for saved, kind in ((search, CrossValidator), (found, CrossValidatorModel)):
        path = str(tmp_path / kind.__name__)
        saved.write().overwrite().save(path)
        again = kind.load(path)
        assert [sorted((p.name, str(v)) for p, v in one.items()) for one in grid] == [
            sorted((p.name, str(v)) for p, v in one.items())
            for one in again.getEstimatorParamMaps()
        ]
    same_rows(found.transform(points), again.transform(points))


def same_rows(one, two):
    first, second = (np.array(made.select("prediction").collect()) for made in (one, two))
    np.testing.assert_array_equal(first, second)


def test_train_validation_split_is_read_again(points, tmp_path):
    plain = sides(maxIter=5)
    solver = SolverParams.from_proto(parse_solver(SIDES)).but(momentum=0.5)
    grid = ParamGridBuilder().addGrid(plain.learningRate, [0.01, 0.2])
    grid = grid.addGrid(plain.solver, [solver]).build()
    judge = MulticlassClassificationEvaluator(labelCol="side")
    found = TrainValidationSplit(
        estimator=plain, estimatorParamMaps=grid, evaluator=judge, seed=1
    ).fit(points)
    found.write().overwrite().save(str(tmp_path / "split"))
    again = TrainValidationSplitModel.load(str(tmp_path / "split"))
    assert again.validationMetrics == pytest.approx(found.validationMetrics)
    for one in again.getEstimatorParamMaps():
        assert parse_solver(one[plain.solver]).momentum == 0.5
    same_rows(found.transform(points), again.transform(points))


AGAIN = """
import sys
from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import SparkSession
from sparknet.spark import local_session
remote, folder = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate() if remote else local_session(2)
points = spark.read.parquet(folder + "/points")
model = PipelineModel.load(folder + "/model")
model.transform(points).select("x", "prediction").write.parquet(folder + "/again")
trained = Pipeline.load(folder + "/pipeline").fit(points)
trained.transform(points).select("x", "prediction").write.parquet(folder + "/trained")
print("done")
"""


@pytest.mark.slow
def test_a_new_process_reads_them(session, points, tmp_path):
    assembler = VectorAssembler(inputCols=["x", "y"], outputCol="vector")
    estimator = sides(featuresCol="vector", seed=3, strategy=SlowMo(steps=4), maxIter=20)
    pipeline = Pipeline(stages=[assembler, estimator])
    model = pipeline.fit(points)
    before = model.transform(points).select("x", "prediction").orderBy("x").collect()
    points.drop("features").write.parquet(str(tmp_path / "points"))
    for saved, name in ((pipeline, "pipeline"), (model, "model")):
        saved.write().overwrite().save(str(tmp_path / name))
        saved.write().overwrite().save(str(tmp_path / name))
    remote = os.environ[REMOTE] if CONNECT else ""
    script = tmp_path / "again.py"
    script.write_text(AGAIN)
    done = subprocess.run(
        [sys.executable, script, remote, tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "done", done.stderr
    after, trained = (
        session.read.parquet(str(tmp_path / name)).orderBy("x").collect()
        for name in ("again", "trained")
    )
    assert after == before
    # Another process gives the workers other rows, so the weights are not the same.
    assert sum(one == other for one, other in zip(trained, before, strict=True)) > 140
    held = sorted(path.name for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert not [name for name in held if name.endswith((".pkl", ".pickle"))]


def test_one_model_alone(points, tmp_path):
    model = sides(maxIter=5, probabilityCol="").fit(points)
    assert model.hasSummary
    path = tmp_path / "model"
    model.save(str(path))
    again = NetModel.load(str(path))
    assert again.uid == model.uid
    assert not again.hasSummary
    assert again.transform(points).columns == model.transform(points).columns
    same_rows(model.transform(points), again.transform(points))
    assert again.evaluate(points).confusion.tolist() == model.evaluate(points).confusion.tolist()
    with pytest.raises(SparkError, match="not trained in this process"):
        _ = again.summary
    with pytest.raises(FileError, match=r"is a saved stage already: write\(\)\.overwrite\(\)"):
        model.save(str(path))
    with pytest.raises(FileError, match="is no saved NetFeaturizer"):
        NetFeaturizer.load(str(path))
    with pytest.raises(FileError, match="is no saved stage"):
        NetModel.load(str(tmp_path / "nothing"))
    weights = path / "weights.caffemodel"
    for crc in path.glob(".*.crc"):
        crc.unlink()
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(FileError, match=r"weights.caffemodel: is damaged: .* check sum"):
        NetModel.load(str(path))
    weights.write_bytes(data[:-1])
    with pytest.raises(FileError, match=r"weights.caffemodel: has .* bytes; .* were saved"):
        NetModel.load(str(path))


def test_today_goes_on_from_yesterday(points, tmp_path):
    estimator = sides(maxIter=30)
    yesterday = estimator.fit(points.where("held"))
    yesterday.save(str(tmp_path / "yesterday"))
    loaded = NetModel.load(str(tmp_path / "yesterday"))
    unchanged = estimator.copy().setWeights(loaded).setMaxIter(0).fit(points)
    assert unchanged.model.net.get_weights().allclose(yesterday.model.net.get_weights())
    begun = estimator.copy().setWeights(loaded)
    begun.save(str(tmp_path / "estimator"))
    today = NetEstimator.load(str(tmp_path / "estimator")).fit(points)
    path = str(tmp_path / "yesterday" / "weights.caffemodel")
    same = estimator.copy().setWeights(path).fit(points)
    assert today.model.net.get_weights().allclose(same.model.net.get_weights())
    assert today.summary.objectiveHistory[0] < estimator.fit(points).summary.objectiveHistory[0]


def test_an_estimator_of_a_net_is_read_again(points, tmp_path):
    """A Net begins with its own weights."""
    net = Net(SIDES)
    net.set_weights(net.get_weights() * 0.5)
    NetEstimator(net, labelCol="side", maxIter=0).save(str(tmp_path / "of"))
    again = NetEstimator.load(str(tmp_path / "of")).fit(points)
    assert again.model.net.get_weights().allclose(net.get_weights())


def test_features_for_logistic_regression(points, tmp_path):
    net = Net(SIDES)
    featurizer = NetFeaturizer(SparkModel(net), inputCol="features", outputCol="deep", output="ip")
    learner = LogisticRegression(featuresCol="deep", labelCol="right")
    fitted = Pipeline(stages=[featurizer, learner]).fit(points)
    predicted = fitted.transform(points)
    assert predicted.schema["deep"].dataType == VectorUDT()
    assert predicted.where("prediction = right").count() > 185
    fitted.write().overwrite().save(str(tmp_path / "fitted"))
    same_rows(predicted, PipelineModel.load(str(tmp_path / "fitted")).transform(points))
    row = predicted.head()
    expected = net.forward({"data": [[row.x, row.y]]}, ["ip"])["ip"][0]
    np.testing.assert_allclose(row.deep, expected, rtol=1e-5)


def test_a_loaded_net_reads_its_own_files_only(session, tmp_path):
    """A mean file goes with the net; a Python layer is imported only for who asks for it."""
    write_blob(tmp_path / "mean.binaryproto", np.full((1, 1, 2, 2), 100, np.float32))
    text = f"""layer {{ name: "data" type: "MemoryData" top: "data" top: "label"
      memory_data_param {{ batch_size: 2 channels: 1 height: 2 width: 2 }}
      transform_param {{ mean_file: "{tmp_path / "mean.binaryproto"}" }} }}
      layer {{ name: "sum" type: "Reduction" bottom: "data" top: "sum"
        reduction_param {{ axis: 1 }} }}"""
    NetFeaturizer(text, inputCol="image").save(str(tmp_path / "mean"))
    (tmp_path / "mean.binaryproto").unlink()
    rows = session.createDataFrame([(bytes([101, 102, 103, 104]),)], "image binary")
    again = NetFeaturizer.load(str(tmp_path / "mean"))
    assert again.transform(rows).head().features == Vectors.dense(10)

    python = """layer { name: "data" type: "Input" top: "data"
      input_param { shape { dim: [1, 2] } } }
      layer { name: "mine" type: "Python" bottom: "data" top: "made"
        python_param { module: "os" layer: "Layer" } }"""
    folder = tmp_path / "python"
    NetFeaturizer(HEAD.removeprefix("net_param { "), random=True).save(str(folder))
    net = folder / "net.prototxt"
    told = net.read_text()
    (folder / ".net.prototxt.crc").unlink(missing_ok=True)
    net.write_text(python)
    metadata = next((folder / "metadata").glob("part-*"))
    said = json.loads(metadata.read_text())
    said["files"]["net.prototxt"] = {"bytes": len(python), "blake2b": check_sum(net)}
    (folder / "metadata" / f".{metadata.name}.crc").unlink(missing_ok=True)
    metadata.write_text(json.dumps(said))
    assert told != python
    with pytest.raises(LayerError, match="of unknown origin"):
        NetFeaturizer.load(str(folder))
    said["data"] = ["../../etc/passwd"]
    metadata.write_text(json.dumps(said))
    with pytest.raises(FileError, match=r"is no saved NetFeaturizer: .*the net's files are"):
        NetFeaturizer.load(str(folder))

    folder = tmp_path / "estimator"
    NetEstimator(HEAD + TAIL, maxIter=1).save(str(folder))
    metadata = next((folder / "metadata").glob("part-*"))
    said = json.loads(metadata.read_text())
    said["paramMap"]["solver"] = f'net_param {{ {python} }} base_lr: 1 lr_policy: "fixed"'
    (folder / "metadata" / f".{metadata.name}.crc").unlink(missing_ok=True)
    metadata.write_text(json.dumps(said))
    again = NetEstimator.load(str(folder))
    assert "Python" not in str(again.getSolver())
    # A grid that was saved beside an estimator has values that no converter has seen.
    for grid in (said["paramMap"]["solver"], 'net: "elsewhere.prototxt" base_lr: 1'):
        with pytest.raises(SparkNetError, match="of unknown origin"):
            again.copy({again.solver: grid}).fit(rows)
    assert again.copy({again.solver: HEAD + TAIL}).trainer.solver is not None
    assert again.setSolver(said["paramMap"]["solver"]).trainer.solver is not None
