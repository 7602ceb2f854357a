"""Modules trained and used on a local Spark, whose tasks are processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("pyspark")

import torch
from torch import nn

from sparknet.errors import SparkError
from sparknet.spark import ModuleModel, Trainer, local_session
from sparknet.training import AllReduce, Averaging, DiLoCo, Strategy
from tests.spark.java import start_quickly
from tests.torch import nets

start_quickly()
SGD, ADAM = partial(torch.optim.SGD, lr=0.01, momentum=0.9), partial(torch.optim.Adam, lr=0.01)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """Whose executor outlives a killed worker: a task may fail three times."""
    found = local_session(2)
    yield found
    found.stop()


def frame(session: Any, name: str, values: Any, label: Any, kind: str = "float") -> Any:
    flat = values.reshape(len(values), -1).tolist()
    rows = [(row, one) for row, one in zip(flat, label.astype(float).tolist(), strict=True)]
    return session.createDataFrame(rows, f"{name} array<{kind}>, label double")


def computed(module: nn.Module, values: Any) -> Any:
    module.eval()
    with torch.no_grad():
        return module(torch.from_numpy(values)).numpy()


def predicted(model: ModuleModel, data: Any) -> Any:
    return np.array([row.output for row in model.transform(data).select("output").collect()])


STRATEGIES = [Averaging(), DiLoCo(steps=10), AllReduce()]
NAMES = [one.name for one in STRATEGIES]


def test_the_resnet_is_the_one_that_people_know() -> None:
    """torchvision's documentation: resnet18 has 11,689,512 parameters."""
    assert sum(one.numel() for one in nets.ResNet18().parameters()) == 11_689_512


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_a_resnet(session: Any, strategy: Strategy) -> None:
    pixels, labels = nets.pictures(96)
    data = frame(session, "x", pixels, labels)
    trainer = Trainer(
        module=nets.resnet18(),
        loss=nn.CrossEntropyLoss(),
        optimizer=SGD,
        strategy=replace(strategy, steps=5),
        workers=2,
        batch_size=8,
        steps=30,
        shapes={"x": [None, 3, 16, 16]},
    )
    trained = trainer.fit(data, data)
    assert trained.outcome.metrics["accuracy"] > 0.6  # of three classes
    assert int(trained.module.bn1.num_batches_tracked) == 30
    made = predicted(trained.model, data)
    np.testing.assert_allclose(made, computed(trained.module, pixels), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_a_transformer_of_tokens(session: Any, strategy: Strategy) -> None:
    tokens, labels = nets.texts(256)
    data = frame(session, "tokens", tokens, labels, "int")
    module = nets.made(nets.Transformer)
    trainer = Trainer(
        module=module,
        loss=nn.functional.cross_entropy,
        optimizer=torch.optim.AdamW(module.parameters(), lr=0.01),
        strategy=strategy,
        workers=2,
        batch_size=32,
        steps=60,
    )
    trained = trainer.fit(data, data)
    assert trained.outcome.metrics["accuracy"] > 0.9
    assert trained.module.last.weight is trained.module.words.weight
    found = trained.model.transform(data, best="class").select("class", "label").collect()
    right = np.mean([row["class"] == row["label"] for row in found])
    assert right == pytest.approx(trained.outcome.metrics["accuracy"])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_an_lstm_of_sequences(session: Any, strategy: Strategy) -> None:
    steps, sums = nets.sequences(256)
    rows = list(zip(steps.tolist(), sums.tolist(), strict=True))
    data = session.createDataFrame(rows, "pairs array<array<float>>, label double")
    trainer = Trainer(
        module=lambda: nets.made(nets.Recurrent),
        loss=nn.MSELoss(),
        optimizer=ADAM,
        strategy=strategy,
        workers=2,
        batch_size=32,
        steps=100,
        columns={"steps": "pairs"},
        metrics=["r2"],
        clip_gradients=1.0,
    )
    trained = trainer.fit(data, data)
    assert trained.outcome.metrics["r2"] > 0.5
    found = trained.model.transform(data)
    assert dict(found.dtypes)["output"] == "float"
    made = np.array([row.output for row in found.select("output").collect()])
    np.testing.assert_allclose(made, computed(trained.module, steps)[:, 0], rtol=1e-4, atol=1e-5)


def test_a_shape_of_nothing_is_refused(session: Any) -> None:
    steps, sums = nets.sequences(8)
    data = frame(session, "steps", steps, sums)
    model = ModuleModel(nets.Recurrent(), shapes={"x": [None, *steps.shape[1:]]})
    with pytest.raises(SparkError, match=r"shapes name 'x', .*: it is given 'steps'$"):
        model.transform(data)
