"""Stragglers: which of the workers computes more slowly than the others, round after round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

_SLOW, _ROUNDS = 1.5, 3
"""How many times as long as the others, over how many rounds, a slow worker takes for a step."""


@dataclass(frozen=True)
class Slow:
    """A worker that is slow, and by how much."""

    worker: int
    seconds: float
    """What a step took it in the round."""
    median: float
    """What it took the other workers."""


class Stragglers:
    """Told of rounds as their events describe them."""

    def __init__(self) -> None:
        self._rounds: Counter[int] = Counter()

    def slow(self, workers: Sequence[dict[str, Any]]) -> list[Slow]:
        """Who has now been slow for some rounds, once for each time that it becomes so.

        Steps are compared, not rounds: in rounds of a fixed time all compute equally long.
        """
        times = {
            rank: float(worker["seconds_computing"]) / worker["steps"]
            for rank, worker in enumerate(workers)
            if worker["steps"]
        }
        found = []
        for rank, spent in times.items():
            others = [time for other, time in times.items() if other != rank]
            usual = median(others) if others else spent
            self._rounds[rank] = self._rounds[rank] + 1 if spent > _SLOW * usual else 0
            if self._rounds[rank] == _ROUNDS:
                found.append(Slow(rank, spent, usual))
        return found
