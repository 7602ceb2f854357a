"""Placement: which host carries which workers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sparknet.comm.rpc import Line


@dataclass
class HostState:
    """What the driver knows of one host that is there."""

    number: int
    where: str
    workers: set[int] = field(default_factory=set)
    """Those that it carries."""
    leaves: bool = False
    """Whether it was told to leave after a round."""


class Placement:
    """The hosts that are there, by their lines."""

    def __init__(self, workers: int, least: int) -> None:
        self._workers, self._least = workers, least
        self.hosts: dict[Line, HostState] = {}

    def host_of(self, worker: int) -> HostState | None:
        """Return the host that carries a worker."""
        return next((one for one in self.hosts.values() if worker in one.workers), None)

    def can_spare(self, host: HostState) -> bool:
        """Return whether enough others stay."""
        staying = sum(not one.leaves for one in self.hosts.values())
        return not host.leaves and staying > self._least

    def moves(self, carriers: Collection[int]) -> dict[int, set[int]]:
        """Return the workers that hosts are to carry, by number; nothing where all stays so.

        A host that leaves has none if one that stays is among the ``carriers`` of the last
        generation: the only one that has the state of workers keeps half of them for a round.
        """
        staying = {one.number: one.workers for one in self.hosts.values() if not one.leaves}
        every = {one.number: one.workers for one in self.hosts.values()}
        is_known = every.keys().isdisjoint(carriers) or not staying.keys().isdisjoint(carriers)
        carried = staying if is_known else every
        if len(every) < self._least or not carried:
            return {}
        plan = {number: set[int]() for number in every}
        plan |= shares(self._workers, carried)
        return {} if plan == every else plan


def shares(workers: int, carried: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
    """Return the workers of each host, as many on each as on the others, give or take one.

    ``carried`` are the hosts with the workers that they have; few of these move.
    """
    least, more = divmod(workers, len(carried))
    order = sorted(carried, key=lambda host: (-len(carried[host]), host))
    places = {host: least + (number < more) for number, host in enumerate(order)}
    stay = {host: set(sorted(carried[host])[: places[host]]) for host in sorted(carried)}
    rest = sorted(set(range(workers)).difference(*stay.values()))
    for host, mine in stay.items():
        count = places[host] - len(mine)
        mine.update(rest[:count])
        del rest[:count]
    return stay
