"""A run as the driver sees it: the job is watched, failures get their name, events are kept.

Two events are Spark's own, beside those of `sparknet.dist.events`:

``workers``
    attempt (more than 1 after a worker was lost), workers (a dict for each: host, process,
    records, held_out)

``slow``
    round, iteration, epoch, worker, where (its host and process), seconds, median (what it and
    the workers in the middle computed in the round)
"""

from __future__ import annotations

import secrets
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet import errors
from sparknet.dist.auth import make_secret
from sparknet.dist.events import Event, OnEvent
from sparknet.dist.worker import Outcome
from sparknet.errors import CommError, SparkError, SparkNetError
from sparknet.native import NDArray
from sparknet.spark import preflight, task
from sparknet.spark.assignment import Assignment
from sparknet.spark.control import Control
from sparknet.spark.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK = 0.2
"""Seconds between two looks at the job."""
_SLOW, _ROUNDS = 1.5, 3
"""How many times the median, over how many rounds, a worker computes to be called slow."""


class Run:
    """One call of `Trainer.fit`."""

    def __init__(self, session: SparkSession, name: str, on_event: OnEvent | None) -> None:
        self.id, self.secret = secrets.token_hex(8), make_secret()
        self.history: list[Event] = []
        self._session, self._name, self._on_event = session, name, on_event
        self._slow_for: dict[int, int] = {}
        self._hosts: list[str] = []

    def hear(self, event: Event) -> None:
        """From worker 0, while the job runs."""
        self.history.append(event)
        if self._on_event is not None:
            self._on_event(event)
        if event["event"] == "workers":
            self._hosts = [f"{one['host']} (process {one['process']})" for one in event["workers"]]
        if event["event"] == "round":
            for slow in self._slow(event):
                self.hear(slow)

    def train(self, control: Control, rows: DataFrame, assignment: Assignment) -> None:
        """Run the barrier stage until it ends; the first interruption ends it with a snapshot.

        The stage feeds a shuffle: then Spark runs it again when a worker is lost, and the workers
        go on from the newest snapshot (DESIGN, decision 10).
        """
        body = partial(task.train, assignment=assignment)
        frame = rows.mapInArrow(body, task.SCHEMA, barrier=True).repartition(1)
        with Job(self._session, frame, self._name) as job:
            try:
                self._watch(job, control)
            except KeyboardInterrupt:
                control.interrupt()
                self._watch(job, control)
            try:
                job.result()
            except Exception as error:
                raise self._failure(control) or preflight.translated(error) from error

    def result(self, control: Control) -> tuple[Outcome, NDArray]:
        """How training ended, and the weights; KeyboardInterrupt if it was interrupted."""
        if control.progress.weights is None or control.progress.outcome is None:
            raise SparkError("the job ended, but no worker sent its weights")
        outcome = Outcome(**control.progress.outcome)
        if outcome.reason == "interrupted":
            kept = outcome.snapshot or "no snapshot, as there is no path for them"
            raise KeyboardInterrupt(f"interrupted at iteration {outcome.iteration}; left: {kept}")
        return outcome, NDArray.view(np.frombuffer(control.progress.weights, np.float32))

    def _watch(self, job: Job, control: Control) -> None:
        """Until it ends; what would fail again and again ends it at once."""
        while not job.wait(_LOOK):
            failure = self._failure(control)
            if failure is not None and not isinstance(failure, (CommError, errors.OutOfMemory)):
                raise failure

    def _failure(self, control: Control) -> SparkNetError | None:
        """The cause among what workers said: losing a peer is what follows from it."""
        found = [_error_of(failure) for failure in list(control.progress.failures)]
        causes = [error for error in found if not isinstance(error, CommError)]
        return next(iter(causes or found), None)

    def _slow(self, event: Event) -> list[Event]:
        """An event for a worker that has been slow for some rounds."""
        times = [float(worker["seconds_computing"]) for worker in event["workers"]]
        usual = median(times)
        found = []
        for rank, time in enumerate(times):
            count = self._slow_for.get(rank, 0) + 1 if time > _SLOW * usual else 0
            self._slow_for[rank] = count
            if count == _ROUNDS:
                found.append(
                    {
                        **{name: event[name] for name in ("time", "round", "iteration", "epoch")},
                        "event": "slow",
                        "worker": rank,
                        "where": self._hosts[rank],
                        "seconds": time,
                        "median": usual,
                    }
                )
        return found


def _error_of(failure: dict[str, Any]) -> SparkNetError:
    """A worker's error, of its own type where that is one of sparknet's."""
    kind = getattr(errors, str(failure["type"]), None)
    if not (isinstance(kind, type) and issubclass(kind, SparkNetError)):
        kind = SparkError
        failure = {**failure, "message": f"{failure['type']}: {failure['message']}"}
    message = f"{failure['message']} (worker {failure['worker']})"
    error: SparkNetError = kind.__new__(kind, message)
    BaseException.__init__(error, message)
    return error
