"""Stragglers: workers that are slower than the others for several rounds, or miss a round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from statistics import median
from typing import Any

_SLOW, _ROUNDS = 1.5, 3
"""A worker is slow whose steps take 1.5 times as long as the others' for three rounds."""
_MUCH = 10.0
"""One whose steps take that many times as long is named after its first round."""
_SECOND, _JITTER = 1.0, 0.3
"""Seconds of computing that are compared: rounds of less are compared together, as the scheduler of
a machine takes milliseconds from a worker.  The second number is enough for the last rule."""

_BACK_OFF = 60.0
"""Seconds for which a worker stays away that was left behind twice."""


@dataclass(frozen=True)
class Slow:
    """A slow worker, and the times of its steps and the others'."""

    worker: int
    seconds: float
    """The time of its step in the round."""
    median: float
    """The median time of the other workers' steps."""


class Stragglers:
    """Finds slow workers in the events of rounds."""

    def __init__(self) -> None:
        self._rounds: Counter[int] = Counter()
        self._seconds: defaultdict[int, float] = defaultdict(float)
        self._steps: Counter[int] = Counter()
        self._where: list[str] = []

    def hear(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields an event for each worker that became slow with this one."""
        if event["event"] == "workers":
            self._rounds.clear()
            self._seconds.clear()
            self._steps.clear()
            self._where = [f"{one['host']} (process {one['process']})" for one in event["workers"]]
        if event["event"] == "round":
            shared = {name: event[name] for name in ("time", "round", "iteration", "epoch")}
            for slow in self.slow(event["workers"]):
                where = self._where[slow.worker]
                yield {"event": "slow", **shared, "where": where, **asdict(slow)}

    def slow(self, workers: Sequence[dict[str, Any]]) -> list[Slow]:
        """Workers that became slow with this round.

        It compares the times of steps: rounds of a fixed time take all workers equally long.
        """
        for rank, worker in enumerate(workers):
            self._seconds[rank] += worker["seconds_computing"]
            self._steps[rank] += worker["steps"]
        longest = max(self._seconds.values(), default=0.0)
        if longest < _JITTER:
            return []
        times = {rank: self._seconds[rank] / steps for rank, steps in self._steps.items() if steps}
        is_whole, stragglers = longest >= _SECOND, []
        for rank, spent in times.items():
            others = [time for other, time in times.items() if other != rank]
            usual = median(others) if others else spent
            before = self._rounds[rank]
            if is_whole:
                self._rounds[rank] = before + 1 if spent > _SLOW * usual else 0
            if spent > _MUCH * usual and before < _ROUNDS:
                self._rounds[rank] = _ROUNDS
            if self._rounds[rank] == _ROUNDS > before:
                stragglers.append(Slow(rank, spent, usual))
        if is_whole:
            self._seconds.clear()
            self._steps.clear()
        return stragglers


_MISSED_ROUNDS = 3
"""One that arrives too late so many times in a row is left behind, however short the rounds are."""
_LONGEST_LOOK = 2.0
"""Seconds between two looks; more means that this process was paused."""


@dataclass(frozen=True)
class Behind:
    """A worker that is left behind, with the seconds of its round and the others' median."""

    worker: int
    seconds: float
    median: float


class Arrivals:
    """Of one run: a worker is late after ``factor`` times the median of the others.

    Those that have not arrived count as later than all others, so that the median is known when
    most have.  Before ``least`` seconds nobody is late in the middle of a round.
    """

    def __init__(self, factor: float, least: float) -> None:
        self._factor, self._least = factor, least
        self._here: set[int] = set()
        self._seconds: dict[int, float] = {}
        """What the workers took for the round, as far as they have arrived."""
        self._round = -1
        self._begun = self._looked = 0.0
        self._slow: Counter[int] = Counter()
        """The rounds in a row that a worker was late in."""

    def meet(self, workers: Collection[int], now: float) -> None:
        """Start a generation; after a loss it goes on with the interrupted round."""
        self._here = set(workers)
        self._seconds = {one: spent for one, spent in self._seconds.items() if one in self._here}
        self._begun = self._looked = now

    def arrive(self, worker: int, round: int, seconds: float, now: float) -> list[Behind]:
        """Note that a worker has trained; return whom the others leave behind after this round."""
        if round != self._round:
            self._round, self._seconds, self._begun = round, {}, now - seconds
        self._seconds[worker] = seconds
        if not self._here <= self._seconds.keys():
            return []
        late = []
        for one in sorted(self._here):
            usual, spent = self._usual(one), self._seconds[one]
            self._slow[one] = self._slow[one] + 1 if spent > self._factor * usual else 0
            if self._slow[one] == _MISSED_ROUNDS:
                late.append(Behind(one, spent, usual))
        return late

    def late(self, now: float) -> list[Behind]:
        """Whom the others leave in the middle of this round: they have waited for too long."""
        if now - self._looked > _LONGEST_LOOK:
            self._begun += now - self._looked
        self._looked, waited = now, now - self._begun
        if waited <= self._least or not self._seconds:
            return []
        away = sorted(self._here - self._seconds.keys())
        absent = [Behind(one, waited, self._usual(one)) for one in away]
        return [one for one in absent if waited > self._factor * one.median]

    def _usual(self, worker: int) -> float:
        others = [self._seconds.get(one, inf) for one in self._here if one != worker]
        return median(others) if others else inf


class BackOff:
    """For how long workers stay away that were left behind; the time grows with each."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self._until: dict[int, float] = {}

    def leave(self, worker: int, now: float) -> None:
        """Note that a worker was left behind: it may return at once, then after 60 s, 180 s …"""
        self._until[worker] = now + _BACK_OFF * (2 ** self._times[worker] - 1)
        self._times[worker] += 1

    def bars(self, worker: int, now: float) -> bool:
        """Return whether a worker has to stay away still."""
        return now < self._until.get(worker, 0.0)
