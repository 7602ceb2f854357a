"""Runs with min_workers, on a local master: each worker is a job of one task."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet import train
from sparknet.errors import DataError, SparkError
from sparknet.loaders import ArrayRecords
from sparknet.spark import Trainer
from sparknet.training.workers.records import WorkerRecords, agreed
from tests.spark.conftest import SLOTS
from tests.spark.digits import pixels, records, solver

COLUMNS = {"data": "pixels", "label": "digit"}


def trainer(folder: Path, **settings: Any) -> Trainer:
    settings = {"steps": 40, "min_workers": 2, **settings}
    return Trainer(solver(), columns=COLUMNS, snapshots=folder, snapshot_every=2, **settings)


def persistent(spark: Any) -> set[int]:
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def test_it_begins_with_as_many_as_there_are_slots_for(spark: Any, tmp_path: Path) -> None:
    settings = {"workers": SLOTS + 3, "min_workers": SLOTS, "start_wait": 0.5}
    kept = persistent(spark)
    trained = trainer(tmp_path, **settings).fit(pixels(spark, 200), pixels(spark, 40))
    (workers,) = trained.history.of_kind("workers")
    assert len(workers["workers"]) == SLOTS
    assert [one["records"] for one in workers["workers"]] == [50] * SLOTS
    assert [one["held_out"] for one in workers["workers"]] == [10] * SLOTS
    assert trained.outcome.iteration == 40
    assert persistent(spark) <= kept


def test_its_weights_are_those_of_processes_of_one_machine(session: Any, tmp_path: Path) -> None:
    """Each worker has all rows, so they are dealt out as those of `train` are."""
    images, labels = records(200)
    rows = {"data": images.astype(np.float32), "label": labels}
    settings = {"workers": 2, "steps": 40}
    here = train(solver(), rows, **settings)
    there = trainer(tmp_path, **settings).fit(pixels(session, 200).coalesce(1))
    np.testing.assert_array_equal(np.asarray(here.weights.flat), np.asarray(there.weights.flat))


def test_a_worker_that_gets_sigterm_hands_in_its_work(spark: Any, tmp_path: Path) -> None:
    """It leaves after its round, and its place is taken again."""
    told: list[int] = []

    def act(event: dict[str, Any]) -> None:
        if event["event"] == "workers" and not told:
            told.append(event["workers"][1]["process"])
        if event["event"] == "round" and event["round"] == 2:
            os.kill(told[0], signal.SIGTERM)

    settings = {"workers": 2, "min_workers": 1, "start_wait": 60.0, "on_event": act}
    trained = trainer(tmp_path, **settings).fit(pixels(spark, 200))
    (left,) = trained.history.of_kind("left")
    assert f"process {told[0]}" in left["where"]
    assert trained.history.of_kind("lost") == []
    assert trained.outcome.samples == 40 * 2 * 20


def test_too_few_slots_even_for_the_fewest(spark: Any, tmp_path: Path) -> None:
    said = f"at least {SLOTS + 1} workers need as many slots at once, and there were {SLOTS} "
    with pytest.raises(SparkError, match=said):
        trainer(tmp_path, workers=9, min_workers=SLOTS + 1).fit(pixels(spark, 20))


def test_rows_that_differ_between_workers_are_refused() -> None:
    """As they may if a machine is lost, and Spark computes its rows again."""
    records = ArrayRecords(label=np.zeros(5, np.int64))

    class Two:
        def __init__(self, other: list[int]) -> None:
            self.gather = lambda mine: [mine, other]

    part = WorkerRecords(records, None, check_sum=7, is_whole=True)
    assert agreed(Two([7, 5]), part) == 7  # type: ignore[arg-type]
    for other in ([8, 5], [7, 4]):
        with pytest.raises(DataError, match="the workers have read different records"):
            agreed(Two(other), part)  # type: ignore[arg-type]


class Killer:
    """Kills a worker after the third round."""

    def __init__(self) -> None:
        self.process = self.killed = 0

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "workers" and not self.process:
            self.process = event["workers"][1]["process"]
        if event["event"] == "round" and event["round"] == 3 and self.process > 0:
            os.kill(self.process, signal.SIGKILL)
            self.killed, self.process = self.process, -1


def test_allreduce_goes_on_from_its_snapshot(session: Any, tmp_path: Path) -> None:
    """All start again, once."""
    settings = {"workers": 3, "strategy": "allreduce", "on_event": Killer()}
    trained = trainer(tmp_path, **settings).fit(pixels(session, 200))
    first, second = trained.history.of_kind("start")
    assert first["resumed"] is None
    assert second["resumed"].endswith("round-00000002")
    assert trained.outcome.iteration == 40
    assert trained.outcome.samples == 40 * 3 * 20


def test_averaging_goes_on_with_those_that_are_left(session: Any, tmp_path: Path) -> None:
    killer = Killer()
    settings = {"workers": 3, "strategy": "averaging", "on_event": killer}
    trained = trainer(tmp_path, **settings).fit(pixels(session, 200))
    (lost,) = trained.history.of_kind("lost")
    assert f"process {killer.killed}" in lost["where"]
    assert len(trained.history.of_kind("start")) == 1
    sizes = [event["workers"] for event in trained.history.of_kind("generation")]
    assert sizes[:2] == [3, 2]
    assert trained.outcome.iteration == 40
