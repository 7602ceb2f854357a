"""A worker that is killed, and an executor: what is left is what no fault would have left."""

import sys
from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("pyspark")

import torch
from torch import nn

import sparknet
from sparknet.errors import PeerLost
from sparknet.spark import Trainer
from tests.spark.cluster import cluster
from tests.spark.driver import SETTINGS
from tests.spark.java import start_quickly
from tests.spark.saboteur import Saboteur, at_round, kill_executor, kill_worker
from tests.torch.modules import LABELS, POINTS, Perceptron, perceptron

start_quickly()


class Dropping(Perceptron):
    """Draws random numbers, which a snapshot has to hold."""

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return super().forward(nn.functional.dropout(points, 0.2, self.training))


def module(kind: type[Perceptron] = Dropping) -> Perceptron:
    torch.manual_seed(0)
    return kind(norm=True)


SETTINGS_OF_RUNS = {
    "loss": nn.CrossEntropyLoss(),
    "optimizer": partial(torch.optim.Adam, lr=0.01),
    "lr_schedule": partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=60),
    "workers": 2,
    "batch_size": 8,
    "strategy": "averaging",
}


def same(first, second):
    np.testing.assert_array_equal(first.weights.flat.numpy(), second.weights.flat.numpy())


def local(**more):
    data = (POINTS, LABELS)
    return sparknet.train(module=module(), data=data, **{**SETTINGS_OF_RUNS, **more})


@pytest.mark.parametrize("buffers", ["average", pytest.param("keep", marks=pytest.mark.long)])
def test_a_run_after_a_killed_process_goes_on_where_its_snapshot_was(tmp_path, buffers):
    whole = local(steps=60, buffers=buffers)
    kept = {"snapshots": tmp_path, "snapshot_every": 2, "buffers": buffers}
    killer = Saboteur(kill_worker(1), at_round(5))
    with pytest.raises(PeerLost, match=r"killed by SIGKILL; resume from .*round-00000004"):
        local(steps=60, on_event=killer, **kept)
    resumed = local(steps=60, resume=True, **kept)
    assert resumed.history.of_kind("start")[0]["resumed"].endswith("round-00000004")
    same(resumed, whole)
    begun = sparknet.train(
        module=perceptron(True, seed=5),
        data=(POINTS, LABELS),
        weights=tmp_path,
        **{**SETTINGS_OF_RUNS, "steps": 0},
    )
    same(begun, whole)


@pytest.fixture(scope="module")
def standalone(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def session(standalone):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(standalone.url).appName("modules")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        made = builder.getOrCreate()
        yield made
        made.stop()


def test_a_killed_executor_costs_no_more_than_since_the_snapshot(session, tmp_path):
    rows = [(one.tolist(), float(label)) for one, label in zip(POINTS, LABELS, strict=True)]
    data = session.createDataFrame(rows, "points array<float>, label double")
    # Many: a worker lives for a moment longer than its executor.
    settings = {**SETTINGS_OF_RUNS, "steps": 1000, "deadline": 20}
    whole = Trainer(module=module(), **settings).fit(data)
    killer = Saboteur(kill_executor(1), at_round(5))
    trainer = Trainer(
        module=module(), **settings, snapshots=str(tmp_path), snapshot_every=2, on_event=killer
    )
    trained = trainer.fit(data)
    begun = [event["resumed"] for event in trained.history.of_kind("start")]
    assert killer.done
    assert begun[0] is None
    assert int(begun[-1].rpartition("-")[2]) >= 4
    same(trained, whole)
    made = trained.model.transform(data, best="class").select("class", "label").collect()
    assert np.mean([row["class"] == row["label"] for row in made]) > 0.8


def test_workers_of_one_process_have_random_numbers_of_their_own():
    same(local(hosts=1, steps=12), local(steps=12))
