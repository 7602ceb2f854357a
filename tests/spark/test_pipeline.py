"""Nets as stages of pyspark.ml's pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark.ml import Pipeline
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.tuning import ParamGridBuilder, TrainValidationSplit

from sparknet.errors import SparkError
from sparknet.spark import Trainer
from sparknet.spark.pipeline import NetEstimator

SOLVER = """net_param { name: "points"
  layer { name: "data" type: "Input" top: "data" top: "label"
    input_param { shape { dim: 10 dim: 2 } shape { dim: 10 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } }
  base_lr: 0.2 momentum: 0.9 lr_policy: "fixed" random_seed: 1 max_iter: 20"""


def estimator(**settings: Any) -> NetEstimator:
    columns = {"data": "features", "label": "side"}
    return NetEstimator(Trainer(SOLVER, columns=columns), best="prediction", **settings)


@pytest.fixture(scope="module")
def points(spark: Any) -> Any:
    """A plain table: two numbers, and on which side of a line they lie."""
    found = np.random.default_rng(0).normal(size=(200, 2)).tolist()
    rows = [(x, y, int(x > y), number % 4 == 0) for number, (x, y) in enumerate(found)]
    return spark.createDataFrame(rows, "x double, y double, side int, held boolean").cache()


@pytest.fixture(scope="module")
def assembled(points: Any) -> Any:
    return VectorAssembler(inputCols=["x", "y"], outputCol="features").transform(points)


def test_a_pipeline_trains_and_predicts(points: Any) -> None:
    assembler = VectorAssembler(inputCols=["x", "y"], outputCol="features")
    fitted = Pipeline(stages=[assembler, estimator(validation="held")]).fit(points)
    predicted = fitted.transform(points)
    assert predicted.dtypes[-2:] == [("ip", "array<float>"), ("prediction", "double")]
    assert predicted.where("prediction = side").count() > 185


def test_params(assembled: Any) -> None:
    plain = estimator()
    assert "workers: tasks that train together (default: 2)" in plain.explainParams()
    fitted = plain.fit(assembled, {plain.getParam("steps"): 0})
    trained = plain.fit(assembled)
    before, after = (one.model.net.get_weights() for one in (fitted, trained))
    assert not before.allclose(after)
    assert plain.copy({plain.getParam("workers"): 1}).getOrDefault("workers") == 1
    assert plain.getOrDefault("workers") == 2


def test_a_grid_finds_what_is_better(assembled: Any) -> None:
    """A net that is not trained at all against one that is."""
    plain = estimator()
    grid = ParamGridBuilder().addGrid(plain.getParam("steps"), [0, 30]).build()
    judge = MulticlassClassificationEvaluator(labelCol="side", metricName="accuracy")
    found = TrainValidationSplit(
        estimator=plain, estimatorParamMaps=grid, evaluator=judge, seed=1
    ).fit(assembled)
    untrained, trained = found.validationMetrics
    assert trained > max(untrained, 0.9)


def test_no_such_column(assembled: Any) -> None:
    with pytest.raises(SparkError, match="the data has no column 'hold' for validation"):
        estimator(validation="hold").fit(assembled)


def test_rows_of_which_nobody_says_whether_they_are_held_out(assembled: Any) -> None:
    """They would be neither trained on nor measured, without a word."""
    unknown = assembled.selectExpr("features", "side", "IF(x > 1, NULL, held) AS held")
    count = unknown.where("held IS NULL").count()
    assert count > 0
    with pytest.raises(SparkError, match=f"column 'held', .* is null in {count} rows: fill it"):
        estimator(validation="held").fit(unknown)
