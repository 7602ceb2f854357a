"""Runs with min_hosts, on a local master: each host is a job of one task."""

import os
import signal

import numpy as np
import pytest

from sparknet import train
from sparknet.errors import DataError, SparkError
from sparknet.loaders import ArrayRecords
from sparknet.spark import Trainer
from sparknet.training.strategies import DiLoCo
from sparknet.training.workers.records import WorkerRecords, agreed
from tests.spark.conftest import SLOTS
from tests.spark.digits import pixels, records, solver

COLUMNS = {"data": "pixels", "label": "digit"}


def trainer(folder, **settings):
    settings = {"steps": 40, "min_hosts": 2, **settings}
    return Trainer(solver(), columns=COLUMNS, snapshots=folder, snapshot_every=2, **settings)


def persistent(spark):
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def test_it_begins_with_as_many_as_there_are_slots_for(spark, tmp_path):
    settings = {"workers": SLOTS + 3, "min_hosts": SLOTS, "start_wait": 0.5}
    kept = persistent(spark)
    trained = trainer(tmp_path, **settings).fit(pixels(spark, 200), pixels(spark, 40))
    (workers,) = trained.history.of_kind("workers")
    assert len({one["process"] for one in workers["workers"]}) == SLOTS
    assert {one["records"] for one in workers["workers"]} == {28, 29}
    assert sum(one["records"] for one in workers["workers"]) == 200
    assert sum(one["held_out"] for one in workers["workers"]) == 40
    assert trained.outcome.iteration == 40
    assert persistent(spark) <= kept


@pytest.mark.parametrize("hosts", [{}, {"min_hosts": None, "hosts": 2}])
def test_its_weights_are_those_of_processes_of_one_machine(session, tmp_path, hosts):
    """Each worker has all rows, so they are dealt out as those of `train` are."""
    there = trainer(tmp_path, workers=2, **hosts).fit(pixels(session, 200).coalesce(1))
    same(there, workers=2)


def same(there, **settings):
    images, labels = records(200)
    rows = {"data": images.astype(np.float32), "label": labels}
    here = train(solver(), rows, steps=40, **settings)
    np.testing.assert_array_equal(np.asarray(here.weights.flat), np.asarray(there.weights.flat))


def test_one_task_carries_several_workers(session, tmp_path):
    there = trainer(tmp_path, workers=3, hosts=1, min_hosts=None).fit(
        pixels(session, 200).coalesce(1)
    )
    (workers,) = there.history.of_kind("workers")
    assert len({one["process"] for one in workers["workers"]}) == 1
    same(there, workers=3)


def test_a_worker_that_gets_sigterm_hands_in_its_work(spark, tmp_path):
    """It leaves after its round, and its place is taken again."""
    told: list[int] = []

    def act(event):
        if event["event"] == "workers" and not told:
            told.append(event["workers"][1]["process"])
        if event["event"] == "round" and event["round"] == 2:
            os.kill(told[0], signal.SIGTERM)

    settings = {"workers": 2, "min_hosts": 1, "start_wait": 60.0, "steps": 400, "on_event": act}
    trained = trainer(tmp_path, **settings).fit(pixels(spark, 200))
    (left,) = trained.history.of_kind("left")
    assert f"process {told[0]}" in left["where"]
    assert trained.history.of_kind("lost") == []
    assert trained.outcome.samples == 400 * 2 * 20


def test_too_few_slots_even_for_the_fewest(spark, tmp_path):
    said = f"at least {SLOTS + 1} workers need as many slots at once, and there were {SLOTS} "
    with pytest.raises(SparkError, match=said):
        trainer(tmp_path, workers=9, min_hosts=SLOTS + 1).fit(pixels(spark, 20))


def test_rows_that_differ_between_workers_are_refused():
    """As they may if a machine is lost, and Spark computes its rows again."""
    records = ArrayRecords(label=np.zeros(5, np.int64))

    class Two:
        def __init__(self, other: list[int]) -> None:
            self.gather = lambda mine: [mine, other]

    part = WorkerRecords(records, None, check_sum=7, is_whole=True)
    assert agreed(Two([7, 5]), part) == 7
    for other in ([8, 5], [7, 4]):
        with pytest.raises(DataError, match="the workers have read different records"):
            agreed(Two(other), part)


class Killer:
    """Kills a worker after the third round."""

    def __init__(self) -> None:
        self.process = self.killed = 0

    def __call__(self, event):
        if event["event"] == "workers" and not self.process:
            self.process = event["workers"][1]["process"]
        if event["event"] == "round" and event["round"] == 3 and self.process > 0:
            os.kill(self.process, signal.SIGKILL)
            self.killed, self.process = self.process, -1


@pytest.mark.parametrize(
    "strategy", ["allreduce", DiLoCo(8, fragments=2, overlap=2, codec="int8")], ids=str
)
def test_others_carry_the_workers_of_a_lost_task(session, tmp_path, strategy):
    killer = Killer()
    settings = {"workers": 3, "strategy": strategy, "start_wait": 60.0, "on_event": killer}
    trained = trainer(tmp_path, **settings).fit(pixels(session, 200).coalesce(1))
    (lost,) = trained.history.of_kind("lost")
    assert f"process {killer.killed}" in lost["where"]
    assert len(trained.history.of_kind("start")) == 1
    assert len(trained.history.of_kind("generation")) >= 2
    same(trained, workers=3, strategy=strategy)
