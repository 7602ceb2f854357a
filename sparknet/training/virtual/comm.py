"""VirtualComm: the comm of threads that run in the order of a simulated clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from threading import Semaphore, Thread
from typing import Any

from sparknet.comm.codecs import CODES, Codec, Coder
from sparknet.comm.collectives import Accept, Comm, Server, raw_bytes
from sparknet.comm.local_comm import DEADLINE, LocalServer
from sparknet.comm.parameter_server import Shard
from sparknet.comm.threads import start
from sparknet.errors import CommError, PeerLost
from sparknet.native import NDArray
from sparknet.native.codes import code_length
from sparknet.training.virtual.cluster import Cluster, Pace

Act = Callable[[Sequence[Any]], tuple[Any, float]]
"""What a meeting does with the workers' values: its result, and the seconds that it takes."""


class Stage:
    """Lets that worker run whose clock is behind all others; so events come in order of time.

    A worker runs until it waits for others (`meet`) or lets them come first (`turn`).
    """

    def __init__(self, size: int, now: float = 0.0) -> None:
        self.clocks = [now] * size
        self.ended: dict[int, str] = {}
        """The workers that have ended, and why."""
        self.lost: tuple[float, int] | None = None
        """When the first worker was lost, and which one, if one was."""
        self._go = [Semaphore(0) for _ in range(size)]
        self._ready = set(range(size))
        self._table: list[Any] = [None] * size
        self._arrived: set[int] = set()
        self._left: set[int] = set()
        self._met: tuple[Any, float] = (None, now)
        self._held = 0

    def open(self) -> None:
        """Let the first worker begin."""
        self._pass_on()

    def enter(self, rank: int) -> None:
        """Wait for the first turn; called by each worker's thread, before all else."""
        self._go[rank].acquire()

    def turn(self, rank: int) -> None:
        """Let the workers go first whose clocks are behind."""
        self._check(rank)
        self._ready.add(rank)
        self._wait(rank)

    def meet(self, rank: int, value: Any, act: Act) -> tuple[Any, float]:
        """Wait for all; returns the meeting's result and the time at which all were there."""
        self._check(rank)
        meetings = self._held
        self._table[rank] = value
        self._arrived.add(rank)
        if len(self._arrived) == len(self.clocks):
            self._hold(act)
        self._wait(rank)
        if self._held == meetings:  # woken because a worker ended
            self._check(rank)
        return self._met

    def lose(self, rank: int, at: float, why: str) -> None:
        """Note that the worker that runs is lost; it runs on until it leaves."""
        self.ended[rank] = why
        self.lost = min(self.lost or (at, rank), (at, rank))

    def leave(self, rank: int) -> None:
        """End a worker; those that wait for it, or ever will, get an error."""
        if rank in self._left:
            return
        self._left.add(rank)
        self.ended.setdefault(rank, "it ended")
        self._ready |= self._arrived - self._left
        self._arrived = set()
        self._pass_on()

    def _hold(self, act: Act) -> None:
        """Hold the meeting itself, while everybody else waits."""
        start = max(self.clocks)
        result, seconds = act(self._table)
        self.clocks = [start + seconds] * len(self.clocks)
        self._met, self._held = (result, start), self._held + 1
        self._ready |= self._arrived
        self._arrived = set()
        self._table = [None] * len(self.clocks)

    def _wait(self, rank: int) -> None:
        self._pass_on()
        self._go[rank].acquire()

    def _pass_on(self) -> None:
        """Let the next worker run; at the end there is none."""
        if self._ready:
            following = min(self._ready, key=lambda rank: (self.clocks[rank], rank))
            self._ready.remove(following)
            self._go[following].release()

    def _check(self, rank: int) -> None:
        if rank in self.ended:
            raise CommError("this comm was closed")
        if self.ended:
            first = min(self.ended)
            raise PeerLost(first, "this process", self.ended[first])


def perform(stage: Stage, work: Callable[[int], Any]) -> list[Any]:
    """Return what ``work`` gives for each worker, or its error; each has a thread of its own."""
    results: list[Any] = [None] * len(stage.clocks)

    def run(rank: int) -> None:
        stage.enter(rank)
        try:
            results[rank] = work(rank)
        except BaseException as error:
            results[rank] = error
        finally:
            stage.leave(rank)

    members = [Thread(target=run, args=(rank,), daemon=True) for rank in range(len(results))]
    for member in members:
        start(member)
    stage.open()
    for member in members:
        member.join()
    return results


class VirtualComm(Comm):
    """Works on the buffers where they lie, with the bits of every other comm.

    One worker runs at a time: that one whose clock is behind the others'.  So the results of
    asynchronous strategies are those of the simulated times, and the same in every run.
    """

    def __init__(
        self, rank: int, stage: Stage, cluster: Cluster, pace: Pace, price: float = 1.0
    ) -> None:
        """``price`` multiplies the bytes of buffers, where they stand for larger ones."""
        super().__init__(rank, len(stage.clocks), DEADLINE)
        self.stage, self.cluster, self.pace = stage, cluster, pace
        self._price = price

    @classmethod
    def group(
        cls, size: int, cluster: Cluster, *, now: float = 0.0, price: float = 1.0
    ) -> list[VirtualComm]:
        """Return the comms of a group; each worker's thread calls `stage.enter` first."""
        stage = Stage(size, now)
        return [cls(rank, stage, cluster, Pace(cluster, rank), price) for rank in range(size)]

    def clock(self) -> float:
        return self.stage.clocks[self.rank]

    def spend(self, seconds: float) -> None:
        """Let time pass for this worker; PeerLost if it is lost in it."""
        self.stage.clocks[self.rank] += seconds
        self._check_loss()

    def server(self, buffer: NDArray, accept: Accept, codec: Codec | None = None) -> Server:
        mine = Shard(self, buffer, accept, codec)
        shards = self._meet(mine, lambda shards: (list(shards), 0.0))
        return _VirtualServer(shards, self, buffer, codec)

    def close(self) -> None:
        self.stage.leave(self.rank)

    # -- what a transport does -----------------------------------------------------------

    def _exchange(self, outgoing: Sequence[memoryview], incoming: Sequence[memoryview]) -> None:
        bytes_out, received = (self._nbytes(views) for views in (outgoing, incoming))

        def act(table: Sequence[Any]) -> tuple[None, float]:
            for rank, (_, targets, _) in enumerate(table):
                for other in self._all:
                    if other != rank:
                        targets[other][:] = table[other][0][rank]
            return None, self._seconds(max(most for _, _, most in table))

        self._in_bulk((outgoing, incoming, max(bytes_out, received)), act, bytes_out, received)

    def _reduce_scatter(self, buffer: NDArray, weights: Sequence[float]) -> None:
        spans, part = self.bounds(buffer.size), buffer.nbytes * (self.size - 1) / self.size

        def act(buffers: Sequence[NDArray]) -> tuple[None, float]:
            for rank, (begin, end) in enumerate(spans):
                if begin < end:
                    parts = [one[begin:end] for one in buffers]
                    self.grid.mean(parts, weights, parts[rank])
            return None, self._seconds(part)

        self._in_bulk(buffer, act, *self._shares(buffer))

    def _all_gather(self, buffer: NDArray) -> None:
        spans, part = self.bounds(buffer.size), buffer.nbytes * (self.size - 1) / self.size

        def act(buffers: Sequence[NDArray]) -> tuple[None, float]:
            first = buffers[0]
            for (begin, end), one in zip(spans, buffers, strict=True):
                if begin < end:
                    first[begin:end].copy_from(one[begin:end])
            for one in buffers[1:]:
                one.copy_from(first)
            return None, self._seconds(part)

        self._in_bulk(buffer, act, *reversed(self._shares(buffer)))

    def _reduce_coded(self, buffer: NDArray, weights: Sequence[float], coder: Coder) -> None:
        self.code(coder.codec, buffer.nbytes)
        super()._reduce_coded(buffer, weights, coder)

    def _meanwhile(self, operation: Callable[[], None]) -> Callable[[], None]:
        """Do it at the end, at the time at which it was begun."""
        start = self.clock()

        def end() -> None:
            now, waited = self.clock(), self.traffic.waiting
            self.stage.clocks[self.rank] = start
            operation()
            self.traffic.waiting = waited
            self.stage.clocks[self.rank] = max(now, self.clock())

        return end

    def _gather(self, value: Any) -> list[Any]:
        seconds = self.cluster.message(0, self.size)
        text = self._meet(json.dumps(value), lambda table: (f"[{','.join(table)}]", seconds))
        values: list[Any] = json.loads(text)
        return values

    # -- time ----------------------------------------------------------------------------

    def _in_bulk(self, value: Any, act: Act, sent: int, received: int) -> None:
        """Meet to move bytes; waiting for it counts as such."""
        before = self.clock()
        _, start = self.stage.meet(self.rank, value, act)
        self.traffic.waiting += start - before
        self.count(sent, received)
        self._check_loss()

    def _meet(self, value: Any, act: Act) -> Any:
        result, _ = self.stage.meet(self.rank, value, act)
        self._check_loss()
        return result

    def count(self, sent: int, received: int) -> None:
        super().count(round(self._price * sent), round(self._price * received))

    def code(self, codec: Codec | None, nbytes: int) -> None:
        """Spend the time of coding a buffer."""
        if codec:
            self.spend(self.cluster.coding.get(codec, 0.0) * self._price * nbytes)

    def alone(self, nbytes: int) -> None:
        """Spend the time of a message that nobody waits for; then it is this worker's turn."""
        with self._timed():
            self.spend(self._seconds(nbytes))
            self.stage.turn(self.rank)

    def _seconds(self, nbytes: float) -> float:
        return self.cluster.message(self._price * nbytes, self.size)

    def _nbytes(self, views: Sequence[memoryview]) -> int:
        return sum(view.nbytes for rank, view in enumerate(views) if rank != self.rank)

    def _shares(self, buffer: NDArray) -> tuple[int, int]:
        """Return the bytes of all others' slices, and of this worker's for all of them."""
        begin, end = self.bounds(buffer.size)[self.rank]
        mine = raw_bytes(buffer[begin:end]).nbytes
        return buffer.nbytes - mine, mine * (self.size - 1)

    def _check_loss(self) -> None:
        at = self.pace.loss_time(self.clock())
        if at is not None:
            why = f"it was lost after {at:.6g} s"
            self.stage.lose(self.rank, at, why)
            raise PeerLost(self.rank, "the virtual cluster", why)


class _VirtualServer(LocalServer):
    """Shards that answer at once; what is sent takes its time."""

    _comm: VirtualComm

    def push(self, delta: NDArray, versions: Sequence[int]) -> list[int]:
        self._take(delta, self._codec)
        return super().push(delta, versions)

    def pull(self, into: NDArray, exact: bool = False) -> list[int]:
        self._take(into, None if exact else self._codec)
        return super().pull(into, exact)

    def raise_hand(self, more: int) -> int:
        self._comm.alone(0)
        return super().raise_hand(more)

    def _take(self, buffer: NDArray, codec: Codec | None) -> None:
        """Spend the time of coding a buffer and of sending the other workers' parts."""
        begin, end = self._spans[self._comm.rank]
        far = buffer.size - (end - begin)
        self._comm.code(codec, buffer.nbytes)
        self._comm.alone(code_length(CODES[codec], far) if codec else 4 * far)
