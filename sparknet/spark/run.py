"""A run as the driver sees it: the job is watched, failures get their name, events are kept.

Some events are Spark's own, beside those of `sparknet.dist.events`:

``reading``
    worker, where (its host and process): it begins to write its records to its local directory

``workers``
    attempt (more than 1 after a worker was lost), workers (a dict for each: host, process,
    records, held_out)

``slow``
    round, iteration, epoch, worker, where (its host and process), seconds, median (what a step
    took it, and the others in the middle, in the third slow round)

``failure``
    worker, type, message (its last words): Spark runs the stage again, from the newest snapshot,
    unless it would only fail again
"""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.dist.events import Event, OnEvent, tell
from sparknet.dist.failure import error_of
from sparknet.dist.handshake import make_secret
from sparknet.dist.worker import Outcome
from sparknet.errors import CommError, OutOfMemory, SparkError, SparkNetError
from sparknet.native import NDArray
from sparknet.spark import preflight, scratch, task
from sparknet.spark.assignment import Assignment
from sparknet.spark.control import Control
from sparknet.spark.job import Job
from sparknet.spark.pace import Pace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK = 0.2
"""Seconds between two looks at the job."""
_GRACE, _LAST = 10.0, 1.0
"""Seconds that the job may take to end when the weights are there, and when a worker was lost."""


class Run:
    """One call of `Trainer.fit`."""

    def __init__(self, session: SparkSession, name: str, on_event: OnEvent | None) -> None:
        self.id, self.secret = secrets.token_hex(8), make_secret()
        self.history: list[Event] = []
        self._session, self._name, self._on_event = session, name, on_event
        self._pace = Pace()
        self._hosts: list[str] = []

    def hear(self, event: Event) -> None:
        """From worker 0, while the job runs."""
        self.history.append(event)
        tell(self._on_event, event)
        if event["event"] == "workers":
            self._pace = Pace()
            self._hosts = [f"{one['host']} (process {one['process']})" for one in event["workers"]]
        if event["event"] == "round":
            for slow in self._slow(event):
                self.hear(slow)

    def train(
        self, control: Control, rows: DataFrame, assignment: Assignment, workers: int
    ) -> None:
        """Run the barrier stage until it ends; the first interruption ends it with a snapshot.

        The stage feeds a shuffle: then Spark runs it again when a worker is lost, and the workers
        go on from the newest snapshot (docs/decisions/0009).
        """
        body = partial(task.train, assignment=assignment)
        frame = rows.mapInArrow(body, task.SCHEMA, barrier=True).repartition(1)
        clean = False
        try:
            with plain_interrupts(), Job(self._session, frame, self._name) as job:
                try:
                    self._watch(job, control)
                except KeyboardInterrupt:
                    control.interrupt()
                    self._watch(job, control)
                clean = job.ended and not control.progress.failures
                if control.progress.outcome is None:
                    self._give_up(job, control)
        finally:
            if not clean:
                self._tidy(workers)

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
        """Until it ends, or training has; what would fail again and again ends it at once."""
        progress, late = control.progress, float("inf")
        while not job.wait(_LOOK) and time.monotonic() < late:
            if progress.outcome is not None:
                grace = _LAST if progress.failures else _GRACE
                late = min(late, time.monotonic() + grace)
            elif progress.broken is not None:
                raise progress.broken
            else:
                cause = _cause(progress.failures)
                if cause is not None and not isinstance(cause, OutOfMemory):
                    raise cause

    def _give_up(self, job: Job, control: Control) -> None:
        """The job ended without weights: why, in one sentence."""
        if control.progress.broken is not None:
            raise control.progress.broken
        failures = control.progress.failures
        try:
            job.result()
        except Exception as error:
            if cause := _cause(failures):
                raise cause from error
            reason = preflight.translated(error)
            if not failures:
                raise reason from error
            raise SparkError(
                f"{preflight.tried(error)}; the last words: {_error_of(failures[-1])}"
            ) from error
        if not control.progress.starts:  # Spark leaves out what would read an empty relation
            raise SparkError("the training data has no records")

    def _tidy(self, workers: int) -> None:
        """Remove what killed processes left on the executors, if these are still there."""
        rows = self._session.range(0, workers, 1, workers)
        frame = rows.mapInArrow(partial(scratch.sweep, run=self.id), scratch.SCHEMA, barrier=True)
        with suppress(Exception), Job(self._session, frame, "sparknet: tidying up") as job:
            job.wait(_GRACE)

    def _slow(self, event: Event) -> Iterator[Event]:
        """An event for each worker that has been slow for some rounds."""
        shared = {name: event[name] for name in ("time", "round", "iteration", "epoch")}
        for slow in self._pace.slow(event["workers"]):
            yield {"event": "slow", **shared, "where": self._hosts[slow.worker], **asdict(slow)}


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Ctrl-C is KeyboardInterrupt and nothing else: Spark's own handler would cancel the job."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cause(failures: Sequence[dict[str, Any]]) -> SparkNetError | None:
    """The cause among what workers said: losing a peer is what follows from it."""
    found = (_error_of(said) for said in tuple(failures))
    return next((error for error in found if not isinstance(error, CommError)), None)


def _error_of(said: dict[str, Any]) -> SparkNetError:
    return error_of(said, said["worker"], SparkError)
