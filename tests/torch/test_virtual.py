"""Modules trained by virtual workers, whose weights are those of real ones."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
from torch import nn

import sparknet
from sparknet.errors import SettingError
from sparknet.training import Cluster, simulate
from sparknet.training.strategies import STRATEGIES
from tests.torch.modules import LABELS, POINTS

DATA = {"input": POINTS, "label": LABELS}


def more_settings(**more):
    """With random numbers, statistics and a momentum."""
    torch.manual_seed(0)
    layers = nn.Linear(4, 8), nn.Dropout(0.2), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)
    told = {
        "module": nn.Sequential(*layers),
        "loss": nn.CrossEntropyLoss(),
        "optimizer": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        "data": DATA,
        "validation": DATA,
        "workers": 2,
        "batch_size": 12,
        "steps": 20,
        "threads": 1,
    }
    return told | more


@pytest.mark.parametrize("strategy", ["averaging", "allreduce"])
def test_the_bits_are_those_of_processes(strategy):
    settings = more_settings()
    before = torch.get_rng_state()
    virtual = simulate(cluster=Cluster(step=0.5), strategy=strategy, **settings)
    assert torch.equal(torch.get_rng_state(), before)
    real = sparknet.train(strategy=strategy, **more_settings())
    np.testing.assert_array_equal(virtual.weights.flat.numpy(), real.weights.flat.numpy())
    assert virtual.outcome.metrics == real.outcome.metrics
    begun, last = virtual.history.of_kind("start")[0], virtual.history.of_kind("round")[-1]
    assert last["time"] - begun["time"] == pytest.approx(20 * 0.5, abs=0.1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_learns(strategy):
    made = more_settings(steps=60)
    trained = simulate(cluster=Cluster(step=0.01, latency=0.001), strategy=strategy, **made)
    assert trained.outcome.metrics["accuracy"] > 0.85
    assert trained.module is not made["module"]


def test_lost_workers_cost_time_alone():
    lossy = Cluster(step=0.1, failures=((1, 1.55),), restart=5.0)
    settings = {"strategy": "averaging", "snapshot_every": 1}
    lost = simulate(cluster=lossy, **settings, **more_settings(steps=30))
    whole = simulate(cluster=Cluster(step=0.1), **settings, **more_settings(steps=30))
    assert lost.history.of_kind("failure")
    np.testing.assert_array_equal(lost.weights.flat.numpy(), whole.weights.flat.numpy())


def test_a_plan_of_a_module():
    """Trials are trainings in virtual time."""
    how = {
        name: more_settings()[name]
        for name in ("module", "loss", "optimizer", "data", "batch_size")
    }
    network = Cluster(step=0.01, latency=0.1)
    planned = sparknet.plan(workers=4, cluster=network, **how)
    assert planned.strategy.steps >= 50
    assert (planned.batch, planned.records) == (12, len(POINTS))
    assert planned.bytes == 4 * sum(one.numel() for one in how["module"].state_dict().values())
    told = {"validation": DATA, "accuracy": 0.8, "seeds": 1, "trial": 5}
    tried = sparknet.plan(workers=2, cluster=network, target="cost", **told, **how)
    assert tried.trials[0].reached
    with pytest.raises(SettingError, match="records are not known: give the data, too"):
        sparknet.plan(**{**how, "data": None})


def test_a_plan_measures_trainings_of_the_module():
    how = {name: more_settings()[name] for name in ("loss", "optimizer", "batch_size")}
    asked = []

    def run(what, workers, strategy, seconds):
        asked.append(what)
        return simulate(
            **what,
            data=DATA,
            workers=workers,
            strategy=strategy,
            cluster=Cluster(step=0.02),
            steps=40,
        ).history

    module = more_settings()["module"]
    planned = sparknet.plan(module=module, data=DATA, workers=2, batches=[4], run=run, **how)
    assert planned.measured[0].step == pytest.approx(0.02)
    assert {one["batch_size"] for one in asked} == {4}
