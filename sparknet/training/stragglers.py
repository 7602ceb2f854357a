"""Stragglers: finds workers that compute more slowly than the others for several rounds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

_SLOW, _ROUNDS = 1.5, 3
"""A worker is slow whose steps take 1.5 times as long as the others' for three rounds."""
_MUCH = 10.0
"""One whose steps take that many times as long is named after its first round."""
_SECOND, _JITTER = 1.0, 0.3
"""Seconds of computing that are compared: rounds of less are compared together, as the scheduler of
a machine takes milliseconds from a worker.  The second number is enough for the last rule."""


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
        is_whole, found = longest >= _SECOND, []
        for rank, spent in times.items():
            others = [time for other, time in times.items() if other != rank]
            usual = median(others) if others else spent
            before = self._rounds[rank]
            if is_whole:
                self._rounds[rank] = before + 1 if spent > _SLOW * usual else 0
            if spent > _MUCH * usual and before < _ROUNDS:
                self._rounds[rank] = _ROUNDS
            if self._rounds[rank] == _ROUNDS > before:
                found.append(Slow(rank, spent, usual))
        if is_whole:
            self._seconds.clear()
            self._steps.clear()
        return found
