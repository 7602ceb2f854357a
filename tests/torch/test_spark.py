"""Modules trained and used on a local Spark, whose tasks are processes of their own."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("pyspark")

import torch
from torch import nn

from sparknet import models
from sparknet.errors import SparkError
from sparknet.loaders import ArrayRecords
from sparknet.net import Net
from sparknet.spark import ModuleModel, SparkModel, Trainer, local_session
from sparknet.torch.modules.flat_module import FlatModule
from sparknet.training import (
    BMUF,
    AllReduce,
    Auto,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    simulate,
)
from tests.spark.java import start_quickly
from tests.spark.round_robin import deal
from tests.torch import nets
from tests.torch.modules import LABELS, POINTS, perceptron

start_quickly()
SGD, ADAM = partial(torch.optim.SGD, lr=0.01, momentum=0.9), partial(torch.optim.Adam, lr=0.01)


@pytest.fixture(scope="module")
def session():
    """Whose executor outlives a killed worker: a task may fail three times."""
    found = local_session(2)
    yield found
    found.stop()


def frame(session, name, values, label, kind="float"):
    flat = values.reshape(len(values), -1).tolist()
    rows = [(row, one) for row, one in zip(flat, label.astype(float).tolist(), strict=True)]
    return session.createDataFrame(rows, f"{name} array<{kind}>, label double")


def computed(module, values):
    module.eval()
    with torch.no_grad():
        return module(torch.from_numpy(values)).numpy()


def predicted(model, data):
    return np.array([row.output for row in model.transform(data).select("output").collect()])


STRATEGIES = [Averaging(), DiLoCo(steps=10), AllReduce()]
NAMES = [one.name for one in STRATEGIES]


def test_the_resnet_is_the_one_that_people_know():
    """torchvision's documentation: resnet18 has 11,689,512 parameters."""
    assert sum(one.numel() for one in nets.ResNet18().parameters()) == 11_689_512


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_a_resnet(session, strategy):
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
def test_a_transformer_of_tokens(session, strategy):
    tokens, labels = nets.texts(256)
    data = frame(session, "tokens", tokens, labels, "int")
    module = nets.make_module(nets.Transformer)
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
    judged = trained.model.evaluate(data)
    assert (judged.rows, judged.accuracy) == (256, pytest.approx(right))
    model = trained.model
    column = data.select(model.udf()("tokens").alias("made"))
    made = np.array([row.made for row in column.collect()])
    np.testing.assert_allclose(made, predicted(model, data), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_an_lstm_of_sequences(session, strategy):
    steps, sums = nets.sequences(256)
    rows = list(zip(steps.tolist(), sums.tolist(), strict=True))
    data = session.createDataFrame(rows, "pairs array<array<float>>, label double")
    trainer = Trainer(
        module=lambda: nets.make_module(nets.Recurrent),
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
    judged = trained.model.evaluate(data)
    assert judged.r2 == pytest.approx(trained.outcome.metrics["r2"], abs=1e-4)
    trained.model.register(session, "summed")
    sums_found = data.selectExpr("summed(pairs) AS made")
    assert sums_found.count() == 256
    assert dict(found.dtypes)["output"] == "float"
    made = np.array([row.output for row in found.select("output").collect()])
    np.testing.assert_allclose(made, computed(trained.module, steps)[:, 0], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def points(session):
    """Rows, and the order in which two workers of Spark read them."""
    data = frame(session, "points", POINTS, LABELS)
    records = ArrayRecords(points=POINTS, label=LABELS)
    return data, deal(records, data, None, 2, 100)


SMALL = {
    "loss": nn.CrossEntropyLoss(),
    "optimizer": partial(torch.optim.SGD, lr=0.05, momentum=0.9),
    "workers": 2,
    "batch_size": 10,
}


@pytest.mark.parametrize(
    "strategy",
    [
        DynamicAveraging(check_every=2, threshold=0.05),
        ElasticAveraging(every=3),
        SlowMo(steps=3),
        BMUF(steps=3),
    ],
    ids=lambda one: one.name,
)
def test_the_weights_are_those_of_virtual_workers(session, points, strategy):
    """Which see the same rows in the same order; their bits are those of processes here."""
    data, dealt_out = points
    how = {**SMALL, "module": perceptron(norm=True), "strategy": strategy}
    here = simulate(data=dealt_out, shuffle=False, threads=1, steps=10, **how)
    there = Trainer(steps=10, **how).fit(data)
    np.testing.assert_array_equal(there.weights.flat.numpy(), here.weights.flat.numpy())
    assert not np.array_equal(here.weights.flat.numpy(), FlatModule(how["module"]).weights.numpy())


@pytest.mark.parametrize("strategy", [Downpour(), Auto()], ids=lambda one: one.name)
def test_what_depends_on_timing_learns(session, points, strategy):
    how = {**SMALL, "module": perceptron(), "strategy": strategy, "steps": 60}
    trained = Trainer(**how).fit(points[0], points[0])
    assert trained.outcome.metrics["accuracy"] > 0.85


def test_tasks_that_take_turns_on_a_device(session):
    pixels = np.random.default_rng(0).normal(size=(12, 1, 28, 28)).astype(np.float32)
    data = frame(session, "data", pixels, np.zeros(12)).repartition(4)
    net = Net(models.net("lenet"), seed=1)
    made = {}
    for name, how in {"native": {}, "apart": {"device": "apart", "tasks_per_gpu": 1}}.items():
        model = SparkModel(net, **how)
        rows = model.transform(data, ["ip2"], batch=2).select("data", "ip2").collect()
        made[name] = np.array([row.ip2 for row in sorted(rows)])
    np.testing.assert_allclose(made["apart"], made["native"], rtol=1e-4, atol=1e-6)


def test_a_shape_of_nothing_is_refused(session):
    steps, sums = nets.sequences(8)
    data = frame(session, "steps", steps, sums)
    model = ModuleModel(nets.Recurrent(), shapes={"x": [None, *steps.shape[1:]]})
    with pytest.raises(SparkError, match=r"shapes name 'x', .*: it is given 'steps'$"):
        model.transform(data)
