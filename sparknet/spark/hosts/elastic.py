"""ElasticWorkers: workers that go on in their tasks when others are lost, and take in others.

Each has a slot, which is a Spark job of one task.  The job waits in Spark's queue until there is a
slot: so a machine that comes in the middle of a run takes a slot that is free.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from sparknet.errors import DataError, SparkError
from sparknet.spark.cluster.background_job import Job, is_classic
from sparknet.spark.hosts.jobs import PAUSE, WorkerTasks, call_off
from sparknet.training.driver.failure import Failure
from sparknet.training.driver.run import Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LAST = 2.0
"""Seconds that the tasks may take to end after their last word to the driver."""
_SOON = 10.0
"""Seconds: a job that ended earlier is not begun again at once."""
_ASK = 1.0
"""Seconds between two looks at what Spark does with executors."""
_LONGEST = 30.0
"""Seconds until it is."""


@dataclass
class _Slot:
    """One slot, with the job that has it."""

    rank: int
    job: Job | None = None
    begun: float = 0.0
    again: float = 0.0
    """The time from which another job may have it."""
    pause: float = 0.0
    old: list[Job] = field(default_factory=list)
    """Jobs that were cancelled and may not have ended."""

    def leave(self, now: float) -> None:
        """Have another job take it, the later the more often that was soon."""
        assert self.job is not None
        if not self.job.ended:
            self.job.cancel()
        self.old = [job for job in [*self.old, self.job] if not job.ended]
        soon = now - self.begun < _SOON
        self.pause = min(max(2 * self.pause, 1.0), _LONGEST) if soon else 0.0
        self.job, self.again = None, now + self.pause


class ElasticWorkers(Workers):
    """A job for each of the most workers that a run may have."""

    restarts = True
    some_ended = False
    patience = inf
    """`_look` counts: too few may be there for as long as a run may take to begin."""

    def __init__(self, tasks: WorkerTasks) -> None:
        self._tasks = tasks
        self._all = [_Slot(rank) for rank in range(tasks.given.workers)]
        self._ends: SimpleQueue[int] = SimpleQueue()
        self._enough = time.monotonic()
        """The time at which there were enough workers, or none had been started."""
        self._held = tasks.given.start_wait + _SOON
        """Seconds for which too few workers hold their slots, before the run begins."""
        self._back = time.monotonic() + self._held
        self._over: float | None = None
        self._leaving = Leaving(tasks.session)
        self._asked = 0.0

    def __enter__(self) -> ElasticWorkers:
        self._begin(time.monotonic())
        return self

    def __exit__(self, *_: object) -> None:
        both = (job for slot in self._all for job in (*slot.old, slot.job))
        call_off(job for job in both if job is not None)

    def wait(self, seconds: float) -> bool:
        with suppress(Empty):
            self._ends.get(timeout=seconds)
        driver, now = self._tasks.run.driver, time.monotonic()
        if driver.progress.outcome is None or driver.present:
            return False
        self._over = self._over or now
        called = (slot.job for slot in self._all if driver.has_called(slot.rank))
        return now > self._over + _LAST or all(job is None or job.ended for job in called)

    def slots(self) -> tuple[int | None, int]:
        return self._tasks.slots(), self._tasks.least

    def renew(self, gone: Sequence[str]) -> int:
        now, latest = time.monotonic(), {}
        if gone:
            events = self._tasks.run.history.of_kind("reading")
            latest = {event["worker"]: event["where"] for event in events}
        for slot in self._all:
            if slot.job is None:
                continue
            if slot.job.ended:
                self._check(slot.rank, slot.job)
            if slot.job.ended or latest.get(slot.rank) in gone:
                slot.leave(now)
        self._look(now)
        self._begin(now)
        self._send_away(now)
        return len(self._all)

    def failure(self, said: Sequence[Failure]) -> Exception:
        return SparkError("the jobs ended, but no worker sent its weights")

    def _begin(self, now: float) -> None:
        for slot in self._all:
            if slot.job is None and now >= slot.again:
                when_ended = partial(self._ends.put, slot.rank)
                slot.job = self._tasks.job(slot.rank, len(self._all), when_ended)
                slot.begun = now
                slot.job.__enter__()

    def _send_away(self, now: float) -> None:
        """Let workers hand in their work whose executors will be taken away."""
        members = self._tasks.run.driver.members
        if members is None or now < self._asked + _ASK:
            return
        self._asked = now
        here = {slot.rank: slot.job for slot in self._all if slot.job is not None}
        members.send_away(self._leaving.ranks(here))

    def _check(self, rank: int, job: Job) -> None:
        """Raise what is wrong for good."""
        driver = self._tasks.run.driver
        if self._tasks.loss(rank, job) is None and not driver.has_called(rank):
            raise DataError("the training data has no records")  # Spark runs no task of nothing

    def _look(self, now: float) -> None:
        """SparkError if there are too few workers for too long.

        A run that has not begun leaves its slots to others for a moment: two of them might hold
        half of the slots each.
        """
        driver = self._tasks.run.driver
        present = driver.present
        if present >= self._tasks.least:
            self._enough = now
            self._back = now + self._held
        elif now - self._enough > self._tasks.patience:
            raise self._tasks.too_few(present)
        elif not driver.progress.starts and present and now > self._back:
            self._held *= 2
            pause = random.uniform(*PAUSE)
            self._back = now + pause + self._held
            for slot in self._all:
                if slot.job is not None:
                    slot.leave(now)
                slot.again = now + pause


class Leaving:
    """Asks the driver's JVM; under Spark Connect nobody can be asked, and nothing is found.

    Its classes are Spark's own and may change: what they no longer have is not found either.
    """

    def __init__(self, session: SparkSession) -> None:
        self._scala: Any = session.sparkContext._jsc.sc() if is_classic(session) else None

    def ranks(self, jobs: Mapping[int, Job]) -> set[int]:
        """Return the keys of the jobs whose task runs on an executor that is being
        decommissioned.
        """
        if self._scala is None:
            return set()
        from py4j.protocol import Py4JError

        try:
            return {rank for rank, job in jobs.items() if any(map(self._leaves, self._of(job)))}
        except Py4JError:
            self._scala = None
            return set()

    def _leaves(self, executor: str) -> bool:
        return bool(self._scala.taskScheduler().getExecutorDecommissionState(executor).isDefined())

    def _of(self, job: Job) -> list[str]:
        """Return the executors that run the tasks of a job."""
        store, executors = self._scala.statusStore(), []
        for number in self._scala.statusTracker().getJobIdsForGroup(job.tag):
            stages = store.job(number).stageIds()
            for at in range(stages.length()):
                attempt = self._scala.statusTracker().getStageInfo(stages.apply(at))
                if attempt.isEmpty() or not attempt.get().numActiveTasks():
                    continue
                tasks = store.taskList(stages.apply(at), attempt.get().currentAttemptId(), 8)
                listed = [tasks.apply(place) for place in range(tasks.length())]
                executors += [task.executorId() for task in listed if task.status() == "RUNNING"]
        return executors
