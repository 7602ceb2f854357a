"""JobWorkers: each worker is a Spark job of one task, so that a run goes on with those it has.

A barrier stage needs all its slots and fails as a whole (SPARK-24942).  Here Spark starts each task
when there is a slot for it, and the run begins with those that came.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from sparknet.errors import DataError, PeerLost, SparkError
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.background_job import Job, is_classic
from sparknet.spark.cluster.session import is_local
from sparknet.spark.filesystem import scratch
from sparknet.spark.hosts import task
from sparknet.spark.hosts.resources import TaskResources
from sparknet.spark.hosts.task import Columns
from sparknet.training.driver.failure import Failure
from sparknet.training.driver.run import Run, Workers
from sparknet.training.settings.training import RunSettings
from sparknet.training.workers.run_spec import RunSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIDYING = 10.0
"""Seconds that the executors may take to remove the folders of killed processes."""
_WORDS = 2.0
"""Seconds after a loss in which the others may report what they saw of it."""
END = 30.0
"""Seconds that cancelled jobs may take to end."""
PAUSE = 1.0, 5.0
"""Seconds for which slots are left to others, at random."""
_TRIES = 4
"""Losses in a row, without a snapshot between them, that end a run."""
_LOST = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|"
    r"sparknet\.errors\.(?:CommError|PeerLost|OutOfMemory)|cancelled"
)
"""What is said of a task that was lost, not wrong."""


@dataclass(frozen=True)
class WorkerTasks:
    """What all workers of a run have in common."""

    session: SparkSession
    rows: DataFrame
    given: RunSettings
    run: Run
    spec: RunSpec
    columns: Columns
    name: str
    timeout: float | None
    """Seconds within which enough workers must have started; None is no limit."""
    resources: TaskResources

    def job(self, rank: int, size: int, when_ended: Callable[[], None]) -> Job:
        body = partial(task.run_worker, spec=self.spec, columns=self.columns, rank=rank, size=size)
        frame = self.resources.mapped(self.rows.coalesce(1), body, task.SCHEMA)
        return Job(self.session, frame, f"{self.name}, worker {rank}", when_ended)

    def tidy(self, barrier: bool) -> None:
        """Remove the folders that killed processes left on the executors."""
        size = self.given.workers
        rows = self.session.range(0, size, 1, size)
        sweep = partial(scratch.sweep, run=self.spec.link.run)
        frame = self.resources.mapped(rows, sweep, scratch.SCHEMA, barrier=barrier)
        with suppress(Exception), Job(self.session, frame, "sparknet: tidying up") as job:
            job.wait(_TIDYING)

    def slots(self) -> int | None:
        return self.resources.slots() if is_classic(self.session) else None

    @property
    def least(self) -> int:
        return self.given.min_workers or self.given.workers

    @property
    def patience(self) -> float:
        """Seconds that enough workers may take to start."""
        return inf if self.timeout is None else self.timeout

    def too_few(self, slots: int | None) -> SparkError:
        there = "" if slots is None else f", and there were {slots}"
        return SparkError(
            f"at least {self.least} workers need as many slots at once{there} (they may "
            f"take {self.patience:g} s, start_timeout=): ask for fewer (min_workers=), or give the "
            "cluster more free slots"
        )

    def check(self) -> None:
        """SparkError if a local master will never have the slots."""
        slots = self.slots()
        if is_classic(self.session) and is_local(self.session) and (slots or 0) < self.least:
            raise self.too_few(slots)

    def loss(self, rank: int, job: Job) -> PeerLost | None:
        """Return whether a job that has ended was lost; raises what is wrong for good."""
        try:
            job.result()
        except Exception as error:
            cause = preflight.translated(error)
            if not _LOST.search(str(error)):
                raise cause from error
            words = str(cause).rpartition("; Spark says: ")[2]
            return PeerLost(rank, "its executor", words)
        return None


def call_off(jobs: Iterable[Job]) -> None:
    """Cancel those that have not ended, and wait for them."""
    going = [job for job in jobs if not job.ended]
    for job in going:
        job.cancel()
    for job in going:
        job.wait(END)


@contextmanager
def stored(session: SparkSession, rows: DataFrame) -> Iterator[DataFrame]:
    """Rows on the executors' disks, from which all workers read them.

    What is lost with a machine Spark computes again.
    """
    from pyspark import StorageLevel

    frame = rows.persist(StorageLevel.DISK_ONLY)
    try:
        with Job(session, frame.groupBy().count(), "sparknet: storing the records") as job:
            try:
                job.result()
            except Exception as error:
                raise preflight.translated(error) from error
        yield frame
    finally:
        with suppress(Exception):  # the session may have been stopped
            frame.unpersist()


class JobWorkers(Workers):
    """So many workers as there are slots for, or ``size``.

    After a loss all start again, from the newest snapshot.
    """

    restarts = True
    some_ended = False

    def __init__(
        self, tasks: WorkerTasks, size: int | None = None, tried: Tried | None = None
    ) -> None:
        self._tasks, self._size = tasks, size
        self._tried = tried or Tried()
        self._jobs: list[Job] = []
        self._ends: SimpleQueue[int] = SimpleQueue()
        self._ended: set[int] = set()
        self._until = inf
        """The time at which the workers' words about a loss have come."""
        self._begun = self._came = 0.0
        """The times at which the jobs were begun, and at which the first worker called."""
        self._present: int | None = None
        """How many of the workers got a slot, where that is not all."""

    def __enter__(self) -> JobWorkers:
        tasks = self._tasks
        self._starts = tasks.run.driver.progress.starts
        size = self._size or self._awaited()
        self._jobs = [tasks.job(rank, size, partial(self._ends.put, rank)) for rank in range(size)]
        self._begun = time.monotonic()
        for job in self._jobs:
            job.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        call_off(self._jobs)

    def wait(self, seconds: float) -> bool:
        with suppress(Empty):
            self._ended.add(self._ends.get(timeout=seconds))
        progress, now = self._tasks.run.driver.progress, time.monotonic()
        if progress.outcome is None and (self._ended or progress.failures):
            self._until = min(self._until, now + _WORDS)
        return len(self._ended) == len(self._jobs) or now >= self._until or self._is_short(now)

    def slots(self) -> tuple[int | None, int]:
        return self._tasks.slots(), len(self._jobs)

    def failure(self, said: Sequence[Failure]) -> Exception:
        """PeerLost if some are lost, or did not come."""
        if self._present is not None:
            return PeerLost(self._present, "an unknown place", "Spark had no slot for it")
        for rank, job in enumerate(self._jobs):
            loss = self._tasks.loss(rank, job) if job.ended else None
            if loss is not None and all(one.worker != rank for one in said):
                return loss
        if said:
            return PeerLost(said[0].worker, "its executor", str(said[0].error))
        if not self._tasks.run.driver.progress.starts:
            return DataError("the training data has no records")
        return SparkError("the jobs ended, but no worker sent its weights")

    def fewer(self, said: Sequence[Failure]) -> JobWorkers:
        """Return those that got slots; or after a loss as many as there are slots for then."""
        tasks, tried = self._tasks, self._tried
        if self._present is None:
            return JobWorkers(tasks, tried=tried.lost(self._saved(), said))
        if self._present >= tasks.least:
            return JobWorkers(tasks, self._present, tried)
        tried.wait_again(self._present, tasks)
        return JobWorkers(tasks, tried=tried)

    def _saved(self) -> int:
        """Return the round of the newest snapshot."""
        snapshots = self._tasks.run.history.of_kind("snapshot")
        return int(snapshots[-1]["round"]) if snapshots else 0

    def _awaited(self) -> int:
        """Return how many to begin with: executors take a while to register.

        With dynamic allocation, or Spark Connect, only a task that waits tells how many slots there
        are.
        """
        tasks = self._tasks
        most, least = tasks.given.workers, tasks.least
        if tasks.slots() is None or is_dynamic(tasks.session):
            return most
        wait = 0.0 if is_local(tasks.session) else tasks.given.start_wait
        progress = preflight.Start(tasks.session, most, tasks.timeout, tasks.run.say)
        start = time.monotonic()
        while (slots := tasks.slots() or 0) < most:
            if slots >= least and time.monotonic() - start >= wait:
                break
            if progress.is_over():
                raise tasks.too_few(slots)
            time.sleep(progress.pause)
        return min(most, max(slots, least))

    def _is_short(self, now: float) -> bool:
        """Return whether those that came have waited long enough for the others."""
        driver, tasks = self._tasks.run.driver, self._tasks
        present = driver.present
        if driver.progress.starts > self._starts or present == len(self._jobs):
            return False
        if present and not self._came:
            self._came = now
        wait = tasks.given.start_wait
        over = now - self._came > wait if self._came else now - self._begun > tasks.patience
        if over:
            self._present = present
        return over


@dataclass
class Tried:
    """What was tried since the run last got on."""

    begun: float = field(default_factory=time.monotonic)
    saved: int = -1
    """The round of the newest snapshot at the last loss."""
    losses: int = 0

    def lost(self, saved: int, said: Sequence[Failure]) -> Tried:
        """After a loss; SparkError if nothing was gained since so many."""
        losses = self.losses + 1 if saved == self.saved else 1
        if losses == _TRIES:
            words = f"; the last words: {said[-1].error}" if said else ""
            raise SparkError(
                f"workers were lost {_TRIES} times in a row, with no snapshot between{words}"
            )
        return Tried(saved=saved, losses=losses)

    def wait_again(self, present: int, tasks: WorkerTasks) -> None:
        """Leave the slots to others for a moment: two runs might hold half of them each."""
        if time.monotonic() - self.begun > tasks.patience:
            raise tasks.too_few(present)
        time.sleep(random.uniform(*PAUSE))


def is_dynamic(session: SparkSession) -> bool:
    """Return whether Spark asks for executors when tasks wait for slots."""
    if not is_classic(session):
        return False
    settings = session.sparkContext.getConf()
    return bool(settings.get("spark.dynamicAllocation.enabled", "false") == "true")
