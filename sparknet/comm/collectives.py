"""Comm: the collective operations of a run's workers, over any transport.

Every worker calls the same operations in the same order.  Sums are taken in the order of the
ranks, beyond a dozen workers in that of a grid (`sparknet.comm.grid`), so that all workers get
the same bits over every transport.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from sparknet.comm.codecs import Codec, Coder
from sparknet.comm.grid import DIRECT, Span, bounds, grid_of
from sparknet.comm.threads import UnderWay
from sparknet.errors import ArrayError
from sparknet.native import NDArray

Accept = Callable[[int], float]
"""The factor of a contribution, by its staleness; 0 drops it."""


@dataclass
class Traffic:
    """The bytes that a worker has sent and received, and the time that it took."""

    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    """Time spent in the comm's operations, waiting included."""
    waiting: float = 0.0
    """The part of it that small values took, which is the waiting for the slowest worker."""


class Server(ABC):
    """A buffer that all workers push to and pull from at any time, sharded over them."""

    @abstractmethod
    def push(self, delta: NDArray, versions: Sequence[int]) -> list[int]:
        """Add a contribution made from weights of these versions; returns its staleness by shard.

        Staleness is the number of contributions received since its pull.
        """

    @abstractmethod
    def pull(self, into: NDArray, exact: bool = False) -> list[int]:
        """Copy the buffer; returns each shard's version, the number of its contributions.

        With a codec the copy is a rounded one, unless it is to be ``exact``.
        """

    @abstractmethod
    def raise_hand(self, more: int) -> int:
        """Add ``more`` to a number that all workers share, and return it; waits for nobody."""

    @abstractmethod
    def close(self) -> None:
        """Stop serving; all workers call it, after their last push and pull."""


class Comm(ABC):
    """One worker's view of all workers: ``rank`` of ``size``."""

    def __init__(self, rank: int, size: int, deadline: float) -> None:
        self.rank, self.size = rank, size
        self.grid = grid_of(size)
        self.deadline = deadline
        """Seconds without a heartbeat after which a worker counts as lost."""
        self.traffic = Traffic()
        self._coders: dict[tuple[Codec, int, int], Coder] = {}
        self._under_way: UnderWay | None = None
        """The last mean that was taken while this worker computed."""

    # -- buffers -------------------------------------------------------------------------

    def mean(
        self, buffer: NDArray, weight: float = 1.0, codec: Codec | None = None, part: int = 0
    ) -> None:
        """Replace ``buffer`` by Σ weight · buffer / Σ weight over the workers.

        A codec sends fewer bytes.  Its rounding errors are added to the next mean of a buffer of
        that size and ``part`` (error feedback), so it is for differences, never for raw weights.
        """
        if self.size == 1:
            return
        weights = [float(one) for one in self.gather(weight)]
        if not sum(weights):
            raise ArrayError("the weights of a mean add up to 0")
        with self._timed():
            if codec is None:
                self._mean(buffer, weights)
                return
            self._mean_coded(buffer, weights, self.coder(codec, buffer.size, part))

    def begin_mean(
        self, buffer: NDArray, codec: Codec | None = None, part: int = 0
    ) -> Callable[[], None]:
        """Begin to take a mean; what is returned waits for its end, and for the result.

        Meanwhile this worker computes and calls no other operation.  ``buffer`` is not to be used,
        and a codec's rounding errors stay what they were until the end.
        """
        weights = [1.0] * self.size
        if self.size == 1:
            return lambda: None
        if codec is None:
            return self._timed_end(self._meanwhile(partial(self._mean, buffer, weights)))
        coder = self.coder(codec, buffer.size, part)
        fresh = Coder(codec, buffer.size, self.bounds(buffer.size)[self.rank]).copy_from(coder)
        end = self._timed_end(self._meanwhile(partial(self._mean_coded, buffer, weights, fresh)))

        def ended() -> None:
            end()
            coder.copy_from(fresh)

        return ended

    def feedback(self, codec: Codec, size: int, part: int = 0) -> tuple[NDArray, NDArray]:
        """Return a codec's rounding errors of this worker's buffers and of its means, as views."""
        coder = self.coder(codec, size, part)
        return coder.own, coder.mean

    def coder(self, codec: Codec, size: int, part: int = 0) -> Coder:
        """Return what codes buffers of that size, with the rounding errors so far."""
        key = codec, size, part
        if key not in self._coders:
            self._coders[key] = Coder(codec, size, self.bounds(size)[self.rank])
        return self._coders[key]

    def reduce_scatter_mean(self, buffer: NDArray, codec: Codec | None = None) -> None:
        """Replace this worker's slice, ``bounds(buffer.size)[rank]``, by the mean over workers."""
        if self.size == 1:
            return
        weights = [1.0] * self.size
        with self._timed():
            if codec is None:
                self._reduce_scatter(buffer, weights)
            else:
                self._reduce_coded(buffer, weights, self.coder(codec, buffer.size))

    def all_gather(self, buffer: NDArray, codec: Codec | None = None) -> None:
        """Send every worker's slice to all workers.

        With a codec all have the same rounded numbers then, the owners too.
        """
        if self.size == 1:
            return
        with self._timed():
            if codec is None:
                self._all_gather(buffer)
            else:
                self._gather_coded(buffer, self.coder(codec, buffer.size))

    def broadcast(self, buffer: NDArray, root: int = 0) -> None:
        """Replace ``buffer`` by that of worker ``root``."""
        self.broadcast_bytes(raw_bytes(buffer), root)

    def broadcast_bytes(self, whole: memoryview, root: int = 0) -> None:
        """Do the same as `broadcast` for memory of any kind."""
        if self.size == 1:
            return
        with self._timed():
            self._broadcast(whole, root)

    def exchange(self, outgoing: Sequence[memoryview], incoming: Sequence[memoryview]) -> None:
        """Send each worker its bytes, and receive theirs; nearly as many as all others do."""
        with self._timed():
            self._exchange(outgoing, incoming)

    def bounds(self, size: int) -> list[Span]:
        """Return the slice of a buffer that each worker owns, in order, of nearly equal sizes."""
        return bounds(size, self.size)

    def served_by(self) -> list[int]:
        """Return the workers that own a server's shards: a dozen of them, spread over the ranks."""
        count = min(self.size, DIRECT)
        return [one * self.size // count for one in range(count)]

    # -- small values --------------------------------------------------------------------

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers, by rank; each is a small JSON value."""
        with self._timed():
            start = self.clock()
            values = self._gather(value)
            self.traffic.waiting += self.clock() - start
            return values

    def any(self, flag: bool) -> bool:
        """Return whether ``flag`` is true on any worker."""
        return any(self.gather(bool(flag)))

    def max(self, value: float) -> float:
        return float(max(self.gather(float(value))))

    def sum(self, value: float) -> float:
        return float(sum(self.gather(float(value))))

    def barrier(self) -> None:
        """Wait until all workers are here."""
        self.gather(None)

    # -- the rest ------------------------------------------------------------------------

    def clock(self) -> float:
        """Return the time in seconds, from a beginning of its own."""
        return perf_counter()

    @abstractmethod
    def server(self, buffer: NDArray, accept: Accept, codec: Codec | None = None) -> Server:
        """Return a new server of a buffer that starts with the same values on all workers.

        ``accept`` gives a contribution's factor by its staleness.  A codec sends pushes and pulls
        in fewer bytes.
        """

    def count(self, sent: int, received: int) -> None:
        """Add bytes to the traffic."""
        self.traffic.sent += sent
        self.traffic.received += received

    @abstractmethod
    def close(self) -> None:
        """Close the connections; workers that wait for this one get an error."""

    def __enter__(self) -> Comm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what a transport does ----------------------------------------------------------------

    @abstractmethod
    def _exchange(self, outgoing: Sequence[memoryview], incoming: Sequence[memoryview]) -> None:
        """Send each worker its bytes, and receive theirs; both ends expect the same lengths.

        Entries at this worker's own rank stay unchanged.
        """

    @abstractmethod
    def _gather(self, value: Any) -> list[Any]:
        """Return the transport's part of `gather`."""

    def _broadcast(self, whole: memoryview, root: int) -> None:
        """Do the transport's part of `broadcast`."""
        nothing = memoryview(bytearray())
        if self.rank == root:
            self._exchange([whole] * self.size, [nothing] * self.size)
        else:
            parts = [whole if rank == root else nothing for rank in range(self.size)]
            self._exchange([nothing] * self.size, parts)

    def _mean(self, buffer: NDArray, weights: Sequence[float]) -> None:
        self._reduce_scatter(buffer, weights)
        self._all_gather(buffer)

    def _reduce_scatter(self, buffer: NDArray, weights: Sequence[float]) -> None:
        spans = self.bounds(buffer.size)
        begin, end = spans[self.rank]
        mine = buffer[begin:end]
        parts = [mine if rank == self.rank else NDArray.empty((end - begin,)) for rank in self._all]
        self._exchange(
            [raw_bytes(buffer[b:e]) for b, e in spans], [raw_bytes(part) for part in parts]
        )
        if end > begin:
            self.grid.mean(parts, weights, mine)

    def _all_gather(self, buffer: NDArray) -> None:
        spans = self.bounds(buffer.size)
        begin, end = spans[self.rank]
        mine = raw_bytes(buffer[begin:end])
        self._exchange([mine] * self.size, [raw_bytes(buffer[b:e]) for b, e in spans])

    def _meanwhile(self, operation: Callable[[], None]) -> Callable[[], None]:
        """Begin an operation beside this worker's computing; what is returned waits for it."""
        self._under_way = UnderWay(operation)
        return self._under_way.wait

    def _timed_end(self, end: Callable[[], None]) -> Callable[[], None]:
        def ended() -> None:
            with self._timed():
                end()

        return ended

    def _mean_coded(self, buffer: NDArray, weights: Sequence[float], coder: Coder) -> None:
        self._reduce_coded(buffer, weights, coder)
        self._gather_coded(buffer, coder)

    def _reduce_coded(self, buffer: NDArray, weights: Sequence[float], coder: Coder) -> None:
        """Send coded slices to their owners, which take the mean."""
        spans = self.bounds(buffer.size)
        begin, end = spans[self.rank]
        coded = coder.encode_all(buffer, spans)
        rooms = [coder.room(end - begin) for _ in self._all]
        rooms[self.rank] = coded[self.rank]
        self._exchange(coded, rooms)
        parts = [coder.decode(one, NDArray.empty((end - begin,))) for one in rooms]
        buffer[begin:end].copy_from(NDArray.weighted_mean(parts, weights))

    def _gather_coded(self, buffer: NDArray, coder: Coder) -> None:
        """Send each owner's slice, coded, to all."""
        spans = self.bounds(buffer.size)
        begin, end = spans[self.rank]
        back = coder.encode_mean(buffer[begin:end])
        means = [coder.room(end - begin) for begin, end in spans]
        means[self.rank] = back
        self._exchange([back] * self.size, means)
        for (begin, end), one in zip(spans, means, strict=True):
            coder.decode(one, buffer[begin:end])

    @property
    def _all(self) -> range:
        return range(self.size)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = self.clock()
        try:
            yield
        finally:
            self.traffic.seconds += self.clock() - start


def raw_bytes(buffer: NDArray) -> memoryview:
    """Return the memory of a contiguous buffer."""
    return buffer.numpy().data.cast("B") if buffer.size else memoryview(bytearray())
