"""LastingWorkers: workers that go on in their tasks when others are lost, and take in others.

Each has a seat, which is a Spark job of one task.  The job waits in Spark's queue until there is a
slot: so a machine that comes in the middle of a run takes a seat that is free.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from queue import Empty, SimpleQueue

from sparknet.errors import DataError, SparkError
from sparknet.spark.cluster.background_job import Job
from sparknet.spark.decommission import Leaving
from sparknet.spark.seats import PAUSE, Seats, call_off
from sparknet.training.failure import Failure
from sparknet.training.run import Workers

_LAST = 2.0
"""Seconds that the tasks may take to end after their last word to the driver."""
_SOON = 10.0
"""Seconds: a job that ended earlier is not begun again at once."""
_ASK = 1.0
"""Seconds between two looks at what Spark does with executors."""
_LONGEST = 30.0
"""Seconds until it is."""


@dataclass
class _Seat:
    """One seat, with the job that has it."""

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


class LastingWorkers(Workers):
    """A job for each of the most workers that a run may have."""

    restarts = True
    some_ended = False
    patience = inf
    """`_look` counts: too few may be there for as long as a run may take to begin."""

    def __init__(self, seats: Seats) -> None:
        self._seats = seats
        self._all = [_Seat(rank) for rank in range(seats.given.workers)]
        self._ends: SimpleQueue[int] = SimpleQueue()
        self._enough = time.monotonic()
        """The time at which there were enough workers, or none had been started."""
        self._held = seats.given.start_wait + _SOON
        """Seconds for which too few workers hold their slots, before the run begins."""
        self._back = time.monotonic() + self._held
        self._over: float | None = None
        self._leaving = Leaving(seats.session)
        self._asked = 0.0

    def __enter__(self) -> LastingWorkers:
        self._begin(time.monotonic())
        return self

    def __exit__(self, *_: object) -> None:
        both = (job for seat in self._all for job in (*seat.old, seat.job))
        call_off(job for job in both if job is not None)

    def wait(self, seconds: float) -> bool:
        with suppress(Empty):
            self._ends.get(timeout=seconds)
        driver, now = self._seats.run.driver, time.monotonic()
        if driver.progress.outcome is None or driver.present:
            return False
        self._over = self._over or now
        called = (seat.job for seat in self._all if driver.has_called(seat.rank))
        return now > self._over + _LAST or all(job is None or job.ended for job in called)

    def slots(self) -> tuple[int | None, int]:
        return self._seats.slots(), self._seats.least

    def renew(self, gone: Sequence[str]) -> int:
        now, latest = time.monotonic(), {}
        if gone:
            read = self._seats.run.history.of_kind("reading")
            latest = {event["worker"]: event["where"] for event in read}
        for seat in self._all:
            if seat.job is None:
                continue
            if seat.job.ended:
                self._check(seat.rank, seat.job)
            if seat.job.ended or latest.get(seat.rank) in gone:
                seat.leave(now)
        self._look(now)
        self._begin(now)
        self._send_away(now)
        return len(self._all)

    def failure(self, said: Sequence[Failure]) -> Exception:
        return SparkError("the jobs ended, but no worker sent its weights")

    def _begin(self, now: float) -> None:
        for seat in self._all:
            if seat.job is None and now >= seat.again:
                when_ended = partial(self._ends.put, seat.rank)
                seat.job = self._seats.job(seat.rank, len(self._all), when_ended)
                seat.begun = now
                seat.job.__enter__()

    def _send_away(self, now: float) -> None:
        """Let workers hand in their work whose executors will be taken away."""
        members = self._seats.run.driver.members
        if members is None or now < self._asked + _ASK:
            return
        self._asked = now
        here = {seat.rank: seat.job for seat in self._all if seat.job is not None}
        members.send_away(self._leaving.ranks(here))

    def _check(self, rank: int, job: Job) -> None:
        """Raise what is wrong for good."""
        driver = self._seats.run.driver
        if self._seats.loss(rank, job) is None and not driver.has_called(rank):
            raise DataError("the training data has no records")  # Spark runs no task of nothing

    def _look(self, now: float) -> None:
        """SparkError if there are too few workers for too long.

        A run that has not begun leaves its slots to others for a moment: two of them might hold
        half of the slots each.
        """
        driver = self._seats.run.driver
        present = driver.present
        if present >= self._seats.least:
            self._enough = now
            self._back = now + self._held
        elif now - self._enough > self._seats.patience:
            raise self._seats.too_few(present)
        elif not driver.progress.starts and present and now > self._back:
            self._held *= 2
            pause = random.uniform(*PAUSE)
            self._back = now + pause + self._held
            for seat in self._all:
                if seat.job is not None:
                    seat.leave(now)
                seat.again = now + pause
