"""The catalogue of mistakes on Spark: tests/messages/test_catalogue.py has the others."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sparknet import Net, NetParams, SolverParams
from sparknet.errors import SparkNetError
from sparknet.spark import SparkModel, Trainer
from tests.messages.files import NET
from tests.messages.judge import judge
from tests.spark.conftest import SLOTS

ROWS = [([float(number), 1.0, 2.0], number % 2) for number in range(20)]
SOLVER = SolverParams(
    net=NetParams.from_text(NET), base_lr=0.1, lr_policy="fixed", max_iter=3, random_seed=1
)

Frame = Any
Mistake = Callable[[Any, Frame], Any]


def fit(frame, **settings):
    return Trainer(SOLVER, **settings).fit(frame)


def model() -> SparkModel:
    return SparkModel(Net(NET, seed=1))


MISTAKES: dict[str, tuple[Mistake, list[str]]] = {
    "a column that is missing": (
        lambda _, frame: fit(frame.withColumnRenamed("data", "pixels")),
        ["'data'", "'pixels'"],
    ),
    "a column of words": (
        lambda _, frame: fit(frame.selectExpr("data", "string(label) AS label")),
        ["'label'", "string"],
    ),
    "no workers": (lambda _, frame: fit(frame, workers=0), ["workers", "0"]),
    "workers above the slots": (
        lambda _, frame: fit(frame, workers=SLOTS + 5),
        [str(SLOTS + 5), str(SLOTS), "slots"],
    ),
    "a strategy": (
        lambda _, frame: fit(frame, strategy="averging"),
        ["'averging'", "'averaging'"],
    ),
    "a keyword": (lambda _, frame: fit(frame, epoch=3), ["'epoch'", "'epochs'"]),
    "a path for the data": (lambda _, __: fit("train.parquet"), ["str", "DataFrame"]),
    "a pandas frame": (lambda _, frame: fit(frame.toPandas()), ["DataFrame"]),
    "no rows": (lambda _, frame: fit(frame.where("false")), ["training data", "no records"]),
    "an output that is not there": (
        lambda _, frame: model().transform(frame, ["fc7"]),
        ["'fc7'", "'ip'"],
    ),
    "a column that is missing for predicting": (
        lambda _, frame: model().transform(frame.drop("data"), ["ip"]),
        ["'data'", "'label'"],
    ),
    "a policy": (
        lambda _, frame: Trainer(SOLVER.but(lr_policy="fixd")).fit(frame),
        ["'fixd'", "'fixed'"],
    ),
}
LATE: dict[str, tuple[Mistake, list[str]]] = {
    "a row that is null": (
        lambda _, frame: fit(frame.selectExpr("if(label = 1, null, data) AS data", "label")),
        ["'data'", "null", "row"],
    ),
    "labels too large": (
        lambda _, frame: fit(frame.selectExpr("data", "label + 5 AS label")),
        ["'label'", "is no class", "row"],
    ),
    "records too wide": (
        lambda _, frame: fit(frame.selectExpr("array(1.0F, 2.0F) AS data", "label")),
        ["'data'", "2", "3", "row"],
    ),
}
"""Told by a job, that reads the rows."""


@pytest.fixture(scope="module")
def frame(session):
    return session.createDataFrame(ROWS, "data array<float>, label int").cache()


@pytest.mark.parametrize("name", MISTAKES | LATE)
def test_a_mistake(name, session, frame):
    mistake, names = (MISTAKES | LATE)[name]
    with pytest.raises(SparkNetError) as caught:
        mistake(session, frame)
    assert judge(str(caught.value), names) == [], caught.value


def test_the_rows_are_good(frame):
    assert np.isfinite(fit(frame, workers=2).history.loss[1]).all()
