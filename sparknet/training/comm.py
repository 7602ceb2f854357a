"""Comm: the collective operations of a run's workers, over any transport.

Every worker calls the same operations in the same order.  Sums are taken in the order of the
ranks, so that all workers get the same bits over every transport.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

from sparknet.native import NDArray
from sparknet.training.codecs import Codec, Coder
from sparknet.training.commits import Commits

Span = tuple[int, int]
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


def bounds(size: int, workers: int) -> list[Span]:
    """The slices of a buffer that so many workers own."""
    return list(pairwise(size * rank // workers for rank in range(workers + 1)))


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
        self.deadline = deadline
        """Seconds without a heartbeat after which a worker counts as lost."""
        self.traffic = Traffic()
        self._coders: dict[tuple[Codec, int], Coder] = {}
        self.commits: Commits | None = None
        """Given where those that are left go on after a loss; else means are taken in place."""

    # -- buffers -------------------------------------------------------------------------

    def mean(self, buffer: NDArray, weight: float = 1.0, codec: Codec | None = None) -> None:
        """Replace ``buffer`` by Σ weight · buffer / Σ weight over the workers.

        With `commits` it stays as it is until its mean is complete.
        A codec sends fewer bytes.  Its rounding errors are added to the next mean of a buffer of
        that size (error feedback), so it is for differences, never for raw weights.
        """
        if self.size == 1:
            return
        weights = [float(one) for one in self.gather(weight)]
        with self._timed():
            if codec is None:
                self._mean(buffer, weights)
                return
            with self._written(buffer, self.feedback(codec, buffer.size)) as mean:
                self._mean_coded(buffer, mean, weights, codec)

    def feedback(self, codec: Codec, size: int) -> tuple[NDArray, NDArray]:
        """A codec's rounding errors of this worker's buffers and of its means, as views."""
        coder = self.coder(codec, size)
        return coder.own, coder.mean

    def coder(self, codec: Codec, size: int) -> Coder:
        """What codes buffers of that size, with the rounding errors so far."""
        if (codec, size) not in self._coders:
            self._coders[codec, size] = Coder(codec, size, self.bounds(size)[self.rank])
        return self._coders[codec, size]

    def reduce_scatter_mean(self, buffer: NDArray) -> None:
        """Replace this worker's slice, ``bounds(buffer.size)[rank]``, by the mean over workers."""
        if self.size > 1:
            with self._timed():
                self._reduce_scatter(buffer, [1.0] * self.size)

    def all_gather(self, buffer: NDArray) -> None:
        """Send every worker's slice to all workers."""
        if self.size > 1:
            with self._timed():
                self._all_gather(buffer)

    def broadcast(self, buffer: NDArray, root: int = 0) -> None:
        """Replace ``buffer`` by that of worker ``root``."""
        self.broadcast_bytes(raw_bytes(buffer), root)

    def broadcast_bytes(self, whole: memoryview, root: int = 0) -> None:
        """Do the same as `broadcast` for memory of any kind."""
        if self.size == 1:
            return
        with self._timed():
            nothing = memoryview(bytearray())
            if self.rank == root:
                self._exchange([whole] * self.size, [nothing] * self.size)
            else:
                given = [whole if rank == root else nothing for rank in range(self.size)]
                self._exchange([nothing] * self.size, given)

    def bounds(self, size: int) -> list[Span]:
        """The slice of a buffer that each worker owns, in order, of nearly equal sizes."""
        return bounds(size, self.size)

    # -- small values --------------------------------------------------------------------

    def gather(self, value: Any) -> list[Any]:
        """The values of all workers, by rank; each is a small JSON value."""
        with self._timed():
            begun = self.clock()
            found = self._gather(value)
            self.traffic.waiting += self.clock() - begun
            return found

    def any(self, flag: bool) -> bool:
        """Whether ``flag`` is true on any worker."""
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
        """The time in seconds, from a beginning of its own."""
        return perf_counter()

    @abstractmethod
    def server(self, buffer: NDArray, accept: Accept, codec: Codec | None = None) -> Server:
        """A new server of a buffer that starts with the same values on all workers.

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
        """The transport's part of `gather`."""

    def _written(
        self, buffer: NDArray, errors: Sequence[NDArray] = ()
    ) -> AbstractContextManager[NDArray]:
        """Gives what a mean of ``buffer`` is written to."""
        return nullcontext(buffer) if self.commits is None else self.commits.mean(buffer, errors)

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
            NDArray.weighted_mean(parts, weights, mine)

    def _all_gather(self, buffer: NDArray) -> None:
        spans = self.bounds(buffer.size)
        begin, end = spans[self.rank]
        mine = raw_bytes(buffer[begin:end])
        self._exchange([mine] * self.size, [raw_bytes(buffer[b:e]) for b, e in spans])

    def _mean_coded(
        self, buffer: NDArray, mean: NDArray, weights: Sequence[float], codec: Codec
    ) -> None:
        """Send coded slices to their owners, and the owners' coded means back to all."""
        spans = self.bounds(buffer.size)
        coder = self.coder(codec, buffer.size)
        coded = coder.encode_all(buffer, spans)
        size = spans[self.rank][1] - spans[self.rank][0]
        given = [coder.room(size) for _ in self._all]
        given[self.rank] = coded[self.rank]
        self._exchange(coded, given)
        parts = [coder.decode(one, NDArray.empty((size,))) for one in given]
        back = coder.encode_mean(NDArray.weighted_mean(parts, weights))
        means = [coder.room(end - begin) for begin, end in spans]
        means[self.rank] = back
        self._exchange([back] * self.size, means)
        for (begin, end), one in zip(spans, means, strict=True):
            coder.decode(one, mean[begin:end])

    @property
    def _all(self) -> range:
        return range(self.size)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = self.clock()
        try:
            yield
        finally:
            self.traffic.seconds += self.clock() - begun


def raw_bytes(buffer: NDArray) -> memoryview:
    """The memory of a contiguous buffer."""
    return buffer.numpy().data.cast("B") if buffer.size else memoryview(bytearray())
