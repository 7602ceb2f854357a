"""Streaming DiLoCo on Spark: what processes of one machine reach, a resume and a lost worker."""

from functools import cache

import numpy as np
import pytest

from sparknet import train
from sparknet.spark import Trainer
from sparknet.training import DiLoCo
from tests.spark.digits import pixels, records, solver
from tests.spark.test_hosts import COLUMNS, Killer

STEPS = 48
PLAIN = DiLoCo(8, fragments=2, overlap=3, mixing=0.25)
CODED = DiLoCo(8, fragments=2, overlap=2, codec="int8")


@cache
def here(strategy, workers=2):
    """The weights of processes of one machine."""
    images, labels = records(200)
    rows = {"data": images.astype(np.float32), "label": labels}
    settings = {"workers": workers, "min_hosts": workers, "steps": STEPS}
    return np.array(train(solver(), rows, strategy=strategy, **settings).weights.flat)


def fit(session, folder, strategy, resume=False, **more):
    settings = {"workers": 2, "min_hosts": 2, "steps": STEPS, "start_wait": 60.0, **more}
    settings |= {"snapshots": folder, "snapshot_every": 3}
    trainer = Trainer(solver(), strategy, columns=COLUMNS, **settings)
    return trainer.fit(pixels(session, 200).coalesce(1), resume=resume)


@pytest.mark.parametrize("strategy", [PLAIN, CODED], ids=["plain", "coded"])
def test_a_resumed_run_ends_with_the_weights_of_one_machine(session, tmp_path, strategy):
    """It stops in the middle of a turn of the parts, and goes on with the other one."""
    first = fit(session, tmp_path, strategy, steps=20)
    assert first.outcome.round == 5
    second = fit(session, tmp_path, strategy, resume=True)
    (start,) = second.history.of_kind("start")
    assert start["resumed"].endswith("round-00000005")
    np.testing.assert_array_equal(np.asarray(second.weights.flat), here(strategy))


def test_others_carry_the_workers_of_a_lost_task(session, tmp_path):
    settings = {"workers": 3, "min_hosts": 2, "on_event": Killer()}
    trained = fit(session, tmp_path, CODED, **settings)
    (lost,) = trained.history.of_kind("lost")
    assert "process" in lost["where"]
    assert len(trained.history.of_kind("start")) == 1
    assert len(trained.history.of_kind("generation")) >= 2
    np.testing.assert_array_equal(np.asarray(trained.weights.flat), here(CODED, workers=3))
