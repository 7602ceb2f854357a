"""HostMemory: the state of workers after their last two rounds, in the memory of a host.

What a worker has of its own lies on its host, and a second time on another one; what all workers
have in common lies once on each host (`sparknet.training.workers.recovery`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparknet.comm.collectives import Comm
from sparknet.native import NDArray

Json = dict[str, Any]


@dataclass
class RoundCopy:
    """What a host has of one round."""

    numbers: list[Json] = field(default_factory=list)
    """The numbers of all workers."""
    common: NDArray | None = None
    own: dict[int, NDArray] = field(default_factory=dict)
    """The arrays of each worker's own, one behind the other."""


class HostMemory:
    """The copies of a host, which its workers share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rounds: dict[int, RoundCopy] = {}

    def add(
        self,
        round: int,
        numbers: Sequence[Json],
        own: Mapping[int, NDArray],
        common: NDArray | None = None,
    ) -> None:
        """Add copies of a round, and forget those of the round before the last one."""
        with self._lock:
            copy = self._rounds.setdefault(round, RoundCopy())
            copy.numbers, copy.own = list(numbers), {**copy.own, **own}
            copy.common = copy.common if common is None else common
            for old in [one for one in self._rounds if one < round - 1]:
                del self._rounds[old]

    def workers_by_round(self) -> dict[str, list[int]]:
        """Return the workers of which this host has copies, by round."""
        with self._lock:
            return {
                str(one): [*copy.own]
                for one, copy in self._rounds.items()
                if copy.common is not None
            }

    def at(self, round: int) -> RoundCopy:
        """Return the copies of a round, and forget those of later ones."""
        with self._lock:
            self._rounds = {one: copy for one, copy in self._rounds.items() if one <= round}
            return self._rounds.get(round, RoundCopy())


@dataclass(frozen=True)
class Agreed:
    """The round that all workers go back to."""

    round: int
    holders: list[list[int]]
    """The workers of which each one's host has copies."""
    numbers: list[Json]


def agree(comm: Comm, memory: HostMemory) -> Agreed | None:
    """Return the newest round of which every worker's state is somewhere; None without one."""
    reports = comm.gather(memory.workers_by_round())
    for round in sorted({int(one) for report in reports for one in report}, reverse=True):
        holders = [report.get(str(round), []) for report in reports]
        if {worker for one in holders for worker in one} == {*range(comm.size)}:
            root = next(rank for rank, one in enumerate(holders) if one)
            mine = memory.at(round).numbers if comm.rank == root else None
            return Agreed(round, holders, comm.gather(mine)[root])
    return None
