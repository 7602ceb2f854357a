"""Crew: the hosts of a run, whatever they are; WorkerHost: a process, or a job of Spark."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from queue import Empty, SimpleQueue

from sparknet.errors import DataError, PeerLost, SparkNetError, WorkerError
from sparknet.training.driver.driver import Driver
from sparknet.training.driver.failure import Failure
from sparknet.training.driver.membership import Membership
from sparknet.training.history import History

TOO_FEW = 60.0
"""Seconds for which there may be fewer hosts than needed, after a loss."""
SOON = 10.0
"""Seconds: the place of a host that ended earlier is not taken at once."""
_LONGEST_PAUSE = 30.0
"""Seconds until it is."""
_LAST = 2.0
"""Seconds that hosts may take to end after their workers' last word to the driver."""
_TRIES = 12
"""Generations in a row, without a further round in any of them, that end a run."""


class WorkerHost(ABC):
    """What carries one or several workers: a process, a task of Spark, a stage of tasks."""

    restarts = False
    """Whether what carries the workers starts all of them again after a loss."""

    ranks: Sequence[int]
    """The workers that it carries to the end; where hosts change, its number."""

    @abstractmethod
    def start(self) -> None: ...

    @property
    @abstractmethod
    def has_ended(self) -> bool: ...

    @abstractmethod
    def cancel(self) -> None:
        """Have it end, without waiting for that."""

    @abstractmethod
    def close(self) -> None:
        """Wait until it has ended."""

    @abstractmethod
    def failure(self, reports: Sequence[Failure]) -> Exception | None:
        """Return why it ended, unless well, given the errors that workers reported."""

    def hung(self, deadline: float) -> str | None:
        """Return what shows that it hangs, if it did nothing for so long and that can be seen."""
        return None


MakeHost = Callable[[int, Callable[[], None]], WorkerHost]
"""Makes a host by its number, which no other has; calls the function when it has ended."""


@dataclass
class _Place:
    """The place of one host, which another takes when it is lost."""

    number: int
    host: WorkerHost | None = None
    hosts: int = 0
    """How many hosts took it so far."""
    start: float = 0.0
    again: float = 0.0
    """The time from which another host may take it."""
    pause: float = 0.0
    old: list[WorkerHost] = field(default_factory=list)
    """Hosts that were cancelled and may not have ended."""

    def leave(self, now: float) -> None:
        """Free the place; the sooner its host ended, the longer it stays free."""
        assert self.host is not None
        self.host.cancel()
        self.old = [host for host in [*self.old, self.host] if not host.has_ended]
        soon = now - self.start < SOON
        self.pause = min(max(2 * self.pause, 1.0), _LONGEST_PAUSE) if soon else 0.0
        self.host, self.again = None, now + self.pause


class Crew:
    """The hosts of a run: entering starts them, leaving ends them all."""

    def __init__(
        self,
        driver: Driver,
        history: History,
        make: MakeHost,
        hosts: int,
        least: int,
        restarts: float = inf,
        foreign: type[SparkNetError] = WorkerError,
    ) -> None:
        """``least`` hosts are enough, where they change; ``restarts`` of them are replaced."""
        self.driver, self._history, self._foreign = driver, history, foreign
        self._make, self.least, self._restarts = make, least, restarts
        self.places = [_Place(number) for number in range(hosts)]
        self._ends: SimpleQueue[int] = SimpleQueue()
        self.enough = time.monotonic()
        """The time at which there were enough hosts, or none had been started."""
        self._over = inf
        """The time at which training was over and all workers had hung up."""
        self._loss: PeerLost | None = None
        """The loss of the host that ended last."""
        self._round, self._starts = 0, 1
        """The farthest round, and how often the run had started when it ended."""

    def __enter__(self) -> Crew:
        try:
            self._start(time.monotonic())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        hosts = [host for place in self.places for host in place.old] + self.hosts
        for host in hosts:
            if not host.has_ended:
                host.cancel()
        for host in hosts:
            host.close()

    @property
    def hosts(self) -> list[WorkerHost]:
        return [place.host for place in self.places if place.host is not None]

    def wait(self, seconds: float) -> bool:
        """Wait until a host ends; returns whether nothing more is expected of any."""
        with suppress(Empty):
            self._ends.get(timeout=seconds)
        if all(host.has_ended for host in self.hosts):
            return True
        driver, now = self.driver, time.monotonic()
        if driver.members is None or driver.progress.outcome is None or driver.present:
            return False
        self._over = min(self._over, now)
        called = (host for host in self.hosts if any(map(driver.has_called, host.ranks)))
        return now > self._over + _LAST or all(host.has_ended for host in called)

    @property
    def some_ended(self) -> bool:
        return any(host.has_ended for host in self.hosts)

    @property
    def restarts(self) -> bool:
        """Whether workers are started again by what carries them."""
        return any(host.restarts for host in self.hosts)

    def slots(self) -> tuple[int | None, int] | None:
        """Return the slots that are there (None: unknown) and those needed; None without slots."""
        return None

    def hung(self) -> PeerLost | None:
        """Return a worker that hangs before its first call to the driver."""
        for host in self.hosts:
            silent = [rank for rank in host.ranks if not self.driver.has_called(rank)]
            fault = host.hung(self.driver.deadline) if silent and not host.has_ended else None
            if fault is not None:
                return PeerLost(silent[0], "this machine", fault)
        return None

    def failure(self, reports: Sequence[Failure]) -> Exception:
        """Return the error of a run without weights; that of a host without a report is first."""
        spoke = {report.worker for report in reports}
        for host in self.hosts:
            is_silent = host.has_ended and (host.restarts or spoke.isdisjoint(host.ranks))
            error = host.failure(reports) if is_silent else None
            if error is not None:
                return error
        if reports:
            return reports[0].error
        if not self.driver.progress.starts:  # Spark skips tasks on an empty relation
            return DataError("the training data has no records")
        return self._foreign("the workers ended, but none of them sent its weights")

    @property
    def coming(self) -> int:
        """How many hosts there are, or may come."""
        there = sum(not host.has_ended for host in self.hosts)
        return there + int(min(len(self.places) - there, self._restarts))

    def keep_up(self, members: Membership) -> bool:
        """Let others come for hosts that are lost, where they change; returns whether any
        are there or may come, and raises the loss if there are too few for too long.
        """
        members.leave_behind()
        now, gone = time.monotonic(), set(members.departures())
        for place in self.places:
            if (host := place.host) is None:
                continue
            if host.has_ended:
                self._check(host)
            if host.has_ended or not gone.isdisjoint(host.ranks):
                place.leave(now)
        self.look(members, now)
        self._start(now)
        return self.coming > 0

    def look(self, members: Membership, now: float) -> None:
        """Raise the loss of a worker if there are too few for too long."""
        self.check_progress()
        loss = members.loss or (self.hung() if members.lacks else None)
        if loss is None and self.coming < self.least:
            loss = self._loss
        if loss is None:
            self.enough = now
        elif self.coming < self.least or now - self.enough > TOO_FEW:
            raise loss

    def check_progress(self) -> None:
        """Raise an error if a run whose hosts are lost never gets any further."""
        rounds, starts = self._history.of_kind("round"), self.driver.progress.starts
        newest = int(rounds[-1]["round"]) if rounds else 0
        if newest > self._round:
            self._round, self._starts = newest, starts
        if starts - self._starts >= _TRIES:
            words = f"; the last words: {self._loss}" if self._loss else ""
            raise self._foreign(
                f"hosts were lost {_TRIES} times in a row, and no round was new{words}"
            )

    def _check(self, host: WorkerHost) -> None:
        """Raise what is wrong for good with a host that has ended."""
        error = host.failure(())
        if error is None and not any(map(self.driver.has_called, host.ranks)):
            error = DataError("the training data has no records")  # Spark runs no task of nothing
        if isinstance(error, PeerLost):
            self._loss = error
        elif error is not None:
            raise error

    def _start(self, now: float) -> None:
        for place in self.places:
            if place.host is not None or now < place.again:
                continue
            if place.start:
                if self._restarts < 1:
                    continue
                self._restarts -= 1
            number = place.number + len(self.places) * place.hosts
            place.host = self._make(number, partial(self._ends.put, place.number))
            place.start, place.hosts = now, place.hosts + 1
            place.host.start()
