"""Arrivals: when the workers of a run have trained their round, and who is left behind.

A worker that computes sends heartbeats, however slow it is, so no deadline of silence finds it.
What is too long follows from what the others take: see `Arrivals`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from math import inf
from statistics import median

_ROUNDS = 3
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
        """A generation begins; after a loss it goes on with the round that was under way."""
        self._here = set(workers)
        self._seconds = {one: spent for one, spent in self._seconds.items() if one in self._here}
        self._begun = self._looked = now

    def arrive(self, worker: int, round: int, seconds: float, now: float) -> list[Behind]:
        """A worker has trained; returns whom the others leave after this round."""
        if round != self._round:
            self._round, self._seconds, self._begun = round, {}, now - seconds
        self._seconds[worker] = seconds
        if not self._here <= self._seconds.keys():
            return []
        found = []
        for one in sorted(self._here):
            usual, spent = self._usual(one), self._seconds[one]
            self._slow[one] = self._slow[one] + 1 if spent > self._factor * usual else 0
            if self._slow[one] == _ROUNDS:
                found.append(Behind(one, spent, usual))
        return found

    def late(self, now: float) -> list[Behind]:
        """Whom the others leave in the middle of this round: they have waited for too long."""
        if now - self._looked > _LONGEST_LOOK:
            self._begun += now - self._looked
        self._looked, waited = now, now - self._begun
        if waited <= self._least or not self._seconds:
            return []
        away = sorted(self._here - self._seconds.keys())
        found = [Behind(one, waited, self._usual(one)) for one in away]
        return [one for one in found if waited > self._factor * one.median]

    def _usual(self, worker: int) -> float:
        others = [self._seconds.get(one, inf) for one in self._here if one != worker]
        return median(others) if others else inf
