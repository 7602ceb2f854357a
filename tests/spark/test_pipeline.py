"""Nets as stages of pyspark.ml's pipelines."""

from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark.ml.feature import VectorAssembler

from sparknet.errors import SettingError, SparkError, SpecError
from sparknet.net import Net
from sparknet.spark import SparkModel, Trainer
from sparknet.spark.pipeline import NetEstimator, NetModel
from sparknet.spark.pipeline.params import of_training
from sparknet.training.settings.fields import setting, settings_of
from sparknet.training.settings.kinds import Whole
from sparknet.training.settings.module import ModuleKeywords
from sparknet.training.settings.training import RunSettings

SOLVER = """net_param { name: "points"
  layer { name: "data" type: "Input" top: "data" top: "label"
    input_param { shape { dim: 10 dim: 2 } shape { dim: 10 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } }
  base_lr: 0.2 momentum: 0.9 lr_policy: "fixed" random_seed: 1 max_iter: 20"""


COLUMNS = {"data": "features", "label": "side"}


def estimator(**settings):
    return NetEstimator(Trainer(SOLVER, columns=COLUMNS), best="prediction", **settings)


@pytest.fixture(scope="module")
def points(session):
    """A plain table: two numbers, and on which side of a line they lie."""
    found = np.random.default_rng(0).normal(size=(200, 2)).tolist()
    rows = [(x, y, int(x > y), number % 4 == 0) for number, (x, y) in enumerate(found)]
    return session.createDataFrame(rows, "x double, y double, side int, held boolean").cache()


@pytest.fixture(scope="module")
def assembled(points):
    return VectorAssembler(inputCols=["x", "y"], outputCol="features").transform(points)


def test_params(assembled):
    plain = estimator()
    assert "workers: Workers that train together (default: 1)" in plain.explainParams()
    fitted = plain.fit(assembled, {plain.getParam("steps"): 0})
    trained = plain.fit(assembled)
    before, after = (one.model.net.get_weights() for one in (fitted, trained))
    assert not before.allclose(after)
    assert plain.copy({plain.getParam("workers"): 2}).getOrDefault("workers") == 2
    assert plain.getOrDefault("workers") == 1


def test_every_setting_of_training_is_a_param():
    others = {"steps": "maxIter", "weight_column": "weightCol", "invalid": "handleInvalid"}
    made = NetEstimator(SOLVER)
    for name, told in settings_of(Trainer).items():
        if name not in {"on_event", "resources", "features", "label", *settings_of(ModuleKeywords)}:
            param = made.getParam(others.get(name, name))
            assert name in {*others, "columns"} or param.doc == told.said.rstrip(".")


def test_a_new_setting_becomes_a_param():
    @dataclass(frozen=True, kw_only=True)
    class More(RunSettings):
        rest_every: int = setting(0, Whole(0), "Rounds between rests.", "rounds")

    made = of_training(settings_of(More)["rest_every"])
    assert made.said == "Rounds between rests"
    assert made.convert is not None
    assert made.convert(3.0) == 3
    with pytest.raises(TypeError, match="it must be at least 0"):
        made.convert(-1)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("keep", 0, "keep is 0: it must be at least 1"),
        ("maxIter", -1, "maxIter is -1: it must be at least 0"),
        ("steps", -1, "maxIter is -1: it must be at least 0"),
        ("goal", "best", "goal is 'best': it must be 'max' or 'min'"),
        ("weightCol", 3, "weightCol is 3: a name is needed"),
        ("ports", [70000], r"ports is \[70000\]: it must be a list of numbers up to 65535"),
    ],
)
def test_a_refused_value_is_named_as_it_was_given(name, value, said):
    with pytest.raises(SparkError, match=said):
        NetEstimator(SOLVER, **{name: value})


def test_no_such_column(assembled):
    with pytest.raises(SparkError, match="the data has no column 'hold' for validation"):
        estimator(validation="hold").fit(assembled)


def test_rows_of_which_nobody_says_whether_they_are_held_out(assembled):
    """They would be neither trained on nor measured, without a word."""
    unknown = assembled.selectExpr("features", "side", "IF(x > 1, NULL, held) AS held")
    count = unknown.where("held IS NULL").count()
    assert count > 0
    with pytest.raises(SparkError, match=f"column 'held', .* is null in {count} rows: fill it"):
        estimator(validation="held").fit(unknown)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"bets": "p"}, "NetEstimator has no keyword 'bets'; did you mean 'best'"),
        ({"zzzz": "p"}, "no keyword 'zzzz': it takes featuresCol, labelCol"),
        ({"outputs": "ip"}, "outputs is 'ip': .*a list"),
        ({"batch": 0}, "batch is 0: .*a whole number, at least 1"),
        ({"batchSize": 2.5}, "batchSize is 2.5: .*a whole number, at least 1"),
        ({"maxIter": "many"}, "maxIter is 'many': "),
        ({"columns": ["x"]}, r"columns is \['x'\]: .*a dict"),
        ({"best": 1}, "predictionCol is 1: .*a name is needed"),
        ({"validation": 1}, "validation is 1: the name of a column"),
        ({"strategy": "averagin"}, "there is no strategy 'averagin'; did you mean 'averaging'"),
    ],
)
def test_keywords_are_checked_before_anything_is_trained(output, said):
    with pytest.raises((SparkError, SettingError), match=said):
        NetEstimator(Trainer(SOLVER), **output)


def test_what_a_stage_is_made_from():
    with pytest.raises(SparkError, match=r"has no solver: NetEstimator\(solver"):
        _ = NetEstimator(maxIter=3).trainer
    with pytest.raises(SparkError, match="NetModel takes a SparkModel, not 'x'"):
        NetModel("x")
    with pytest.raises(SparkError, match="NetModel has no keyword 'validation'"):
        NetModel(SparkModel(Net(SOLVER)), validation="held")


@pytest.mark.parametrize(
    ("output", "kind", "said"),
    [
        ({"outputs": ["pi"]}, SpecError, "the net has no blob 'pi'"),
        ({"outputs": ["loss"]}, SparkError, "blob 'loss' is .*: it has no row for each"),
        ({"columns": {"dat": "features"}}, SparkError, "columns names 'dat'.*did you mean 'data'"),
    ],
)
def test_what_the_net_has_not_is_told_before_it_is_trained(assembled, output, kind, said):
    heard = []
    trainer = Trainer(SOLVER, columns=COLUMNS, on_event=heard.append)
    with pytest.raises(kind, match=said):
        NetEstimator(trainer, **output).fit(assembled)
    assert not heard
