"""Recovery: copies of all workers' state after each round, and the way back to them.

When a host is lost, all workers go back to the newest round of which everything is somewhere
(`agree`), and compute the next one again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.comm.collectives import Comm, raw_bytes
from sparknet.native import NDArray
from sparknet.training.checkpoints.resume import arrays_of, numbers_of, restore_numbers
from sparknet.training.workers.host_memory import Agreed, HostMemory
from sparknet.training.workers.state import RunState


def restore(rounds: RunState, memory: HostMemory, agreed: Agreed) -> None:
    """Take over this worker's state after a round, wherever its copies are."""
    comm, copy = rounds.comm, memory.at(agreed.round)
    numbers = agreed.numbers[comm.rank]
    restore_numbers(rounds, numbers)
    own, common = _parts(rounds)
    root = next(rank for rank, one in enumerate(agreed.holders) if one)
    if not all(agreed.holders):
        copy.common = _send(comm, root, copy.common, _size(common))
    for worker, size in enumerate(comm.gather(_size(own))):
        if worker in agreed.holders[worker]:
            continue
        source = next(rank for rank, one in enumerate(agreed.holders) if worker in one)
        part = _send(comm, source, copy.own.get(worker), size)
        if worker == comm.rank:
            copy.own[worker] = part
    assert copy.common is not None
    mine = copy.own[comm.rank]
    _unpack(copy.common, common)
    _unpack(mine, own)
    rounds.learner.restore(numbers["learner"])
    memory.add(agreed.round, agreed.numbers, {comm.rank: mine}, copy.common)


def _send(comm: Comm, source: int, values: NDArray | None, size: int) -> NDArray:
    """Return values of worker ``source``, on all workers."""
    here = NDArray.empty((size,)) if comm.rank != source or values is None else values
    comm.broadcast(here, source)
    return here


def keep(rounds: RunState, memory: HostMemory, hosts: Sequence[int]) -> None:
    """Copy a worker's state after a round: here, and what is its own on another host, too.

    A run of one host copies only before another one comes.
    """
    comm, round = rounds.comm, rounds.state.round
    if len(set(hosts)) == 1 and not rounds.parts:
        return
    own, common = _parts(rounds)
    mine = _packed(own)
    first = hosts.index(hosts[comm.rank]) == comm.rank
    whole = _packed(common) if first else None
    reports = comm.gather([numbers_of(rounds), mine.size])
    copies = {comm.rank: mine}
    if len(set(hosts)) > 1:
        nothing = memoryview(bytearray())
        outgoing, incoming = [nothing] * comm.size, [nothing] * comm.size
        outgoing[second_place(hosts, comm.rank)] = raw_bytes(mine)
        for worker, (_, size) in enumerate(reports):
            if worker != comm.rank and second_place(hosts, worker) == comm.rank:
                copies[worker] = NDArray.empty((size,))
                incoming[worker] = raw_bytes(copies[worker])
        comm.exchange(outgoing, incoming)
    memory.add(round, [numbers for numbers, _ in reports], copies, whole)


def second_place(hosts: Sequence[int], worker: int) -> int:
    """Return the worker of another host that holds the second copy of a worker's state."""
    following: list[int] = [*range(worker + 1, len(hosts)), *range(worker)]
    return next(rank for rank in following if hosts[rank] != hosts[worker])


def _parts(rounds: RunState) -> tuple[list[NDArray], list[NDArray]]:
    """Return a worker's own arrays, and those that are the same on all workers."""
    arrays = arrays_of(rounds)
    common = [name for name in arrays if name.startswith("strategy ") or name == "best weights"]
    if not rounds.strategy.keeps_apart(rounds.state):
        common.append("weights")
    own = [one for name, one in arrays.items() if name not in common]
    return own, [arrays[name] for name in common]


def _size(arrays: Sequence[NDArray]) -> int:
    sizes = (int(one.size) for one in arrays)
    return sum(sizes)


def _packed(arrays: Sequence[NDArray]) -> NDArray:
    whole, place = NDArray.empty((max(_size(arrays), 1),)), 0
    for one in arrays:
        whole[place : place + one.size].copy_from(one)
        place += one.size
    return whole


def _unpack(whole: NDArray, arrays: Sequence[NDArray]) -> None:
    place = 0
    for one in arrays:
        one.copy_from(whole[place : place + one.size])
        place += one.size
