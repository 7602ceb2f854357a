"""Nets of other kinds train on Spark: colour images, tables."""

from typing import Any

import numpy as np
import pytest

from sparknet import models
from sparknet.dsl import SolverParams
from sparknet.models import mlp_tabular
from sparknet.spark import Trainer

Array = np.ndarray[Any, Any]


def striped(count: int, seed: int) -> tuple[Array, Array]:
    """Noisy colour images, 3 x 32 x 32, with stripes in one of four directions."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, count)
    row, column = np.indices((32, 32))
    along = np.stack([row, column, row + column, row - column])[labels]
    light = (along + random.integers(0, 8, (count, 1, 1))) % 8 < 4
    colors = random.uniform(0.3, 1, (count, 3, 1, 1))
    images = np.where(light, 60, -60)[:, None] * colors + random.normal(0, 30, (count, 3, 32, 32))
    return images.astype(np.float32), labels


def test_a_net_for_colour_images(spark):
    solver = SolverParams(
        net=models.net("cifar10_quick", 25, 50),
        base_lr=0.001,
        lr_policy="fixed",
        momentum=0.9,
        max_iter=30,
        random_seed=1,
    )

    def frame(count, seed):
        images, labels = striped(count, seed)
        rows = [(image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)]
        return spark.createDataFrame(rows, "data binary, label int")

    trained = Trainer(solver, workers=2).fit(frame(400, 0), validation=frame(100, 1))
    assert trained.outcome.metrics["accuracy"] > 0.95


def table(count: int, seed: int) -> tuple[Array, Array]:
    """Rows of 8 numbers; the class is whether the first two have one sign."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, 8))
    return rows, (rows[:, 0] * rows[:, 1] > 0).astype(int)


def _lists(spark, rows, labels):
    listed = [(row.tolist(), int(label)) for row, label in zip(rows, labels, strict=True)]
    return spark.createDataFrame(listed, "features array<float>, label int")


def _vectors(spark, rows, labels):
    from pyspark.ml.linalg import Vectors

    listed = [(Vectors.dense(row), float(label)) for row, label in zip(rows, labels, strict=True)]
    return spark.createDataFrame(listed, ["features", "label"])


@pytest.mark.parametrize("column", [_lists, _vectors])
def test_a_perceptron_on_a_table(spark, column):
    solver = SolverParams(
        net=mlp_tabular.net(50, 50, features=8, units=64),
        type="Adam",
        base_lr=0.003,
        lr_policy="fixed",
        momentum=0.9,
        momentum2=0.999,
        max_iter=200,
        random_seed=1,
    )
    trainer = Trainer(solver, workers=2, columns={"data": "features"})
    trained = trainer.fit(column(spark, *table(1000, 0)), column(spark, *table(400, 1)))
    assert trained.outcome.metrics["accuracy"] > 0.9
