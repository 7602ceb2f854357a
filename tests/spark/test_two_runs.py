"""Two runs of one application, each of which holds half of its slots (xgboost #2307)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sparknet.spark import Trainer
from sparknet.spark.cluster.background_job import Job
from sparknet.spark.hosts import train as conducting
from sparknet.spark.hosts.crew import SparkCrew
from sparknet.training.driver import crew
from tests.spark.cluster import until
from tests.spark.conftest import SLOTS
from tests.spark.digits import pixels, solver
from tests.spark.test_hosts import COLUMNS

# 20 to 50 s: each gives its slots back for seconds, drawn at random, until one has enough.
pytestmark = pytest.mark.slow

POOLS = ("first", "second")


def block(batches, folder):
    """A task that says that it runs, and ends when it is told to."""
    from pyspark import TaskContext

    Path(folder, f"runs-{TaskContext.get().partitionId()}").touch()
    until(Path(folder, "end").exists, "the blocked slots are released")
    yield from batches


class Blocked:
    """All slots are taken until both runs have asked for as many as they want.

    Then the fair scheduler gives each in turn a slot.
    """

    def __init__(self, spark, folder):
        self._folder, self._tracker = folder, spark.sparkContext.statusTracker()
        frame = spark.range(0, SLOTS, 1, SLOTS)
        self._job = Job(
            spark, frame.mapInArrow(partial(block, folder=str(folder)), "id long"), "blocked"
        )
        self.barrier = threading.Barrier(2, action=self._begin)

    @contextmanager
    def stored(self, session, rows, store):
        with store(session, rows) as kept:
            self.barrier.wait()
            yield kept

    def _begin(self) -> None:
        self._job.__enter__()
        running = [self._folder / f"runs-{rank}" for rank in range(SLOTS)]
        until(lambda: all(one.exists() for one in running), "all slots are blocked")
        threading.Thread(target=self._release).start()

    def _release(self) -> None:
        jobs = self._tracker.getActiveJobsIds
        until(lambda: len(jobs()) == 1 + 2 * SLOTS, "both runs have asked for all slots")
        (self._folder / "end").touch()


def test_one_of_two_runs_gives_its_slots_back(spark, tmp_path, monkeypatch):
    """Each has two of four and needs three: the one that comes back first trains first."""
    blocked, given_back = Blocked(spark, tmp_path), list[Any]()
    monkeypatch.setattr(conducting, "stored", partial(blocked.stored, store=conducting.stored))
    monkeypatch.setattr(crew, "SOON", 1.0)
    look = SparkCrew.look

    def looked(workers, members, now):
        held = len(workers.hosts)
        look(workers, members, now)
        if held and not workers.hosts:
            given_back.append(workers)

    monkeypatch.setattr(SparkCrew, "look", looked)

    def fit(pool):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        settings = {"workers": SLOTS, "min_hosts": SLOTS - 1, "steps": 40, "start_wait": 1.0}
        return Trainer(solver(), columns=COLUMNS, **settings).fit(pixels(spark, 200))

    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(fit, POOLS))
    assert given_back
    for trained in both:
        assert trained.outcome.iteration == 40
        assert len(trained.history.of_kind("start")) == 1
        sizes = {one["hosts"] for one in trained.history.of_kind("generation")}
        assert sizes <= {SLOTS - 1, SLOTS}
