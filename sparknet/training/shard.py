"""Shard: a worker's slice of a buffer that all workers push to and pull from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from threading import Lock

from sparknet.errors import CommError
from sparknet.native import NDArray
from sparknet.native.codes import code_length, decode, encode
from sparknet.training.codecs import CODES, Codec
from sparknet.training.comm import Accept, Comm, Server, raw_bytes
from sparknet.training.grid import Span, bounds


class Shard:
    """The slice itself, on the worker that owns it.

    With a codec, a pull codes the difference to what the worker has, which the shard knows: so
    the rounding error of one pull is part of the next difference.
    """

    def __init__(self, comm: Comm, buffer: NDArray, accept: Accept, codec: Codec | None) -> None:
        begin, end = spans_of(comm, buffer.size)[comm.rank]
        self._values = buffer[begin:end].copy()
        self._pushed, self._codec = NDArray.empty(self._values.shape), codec
        self._held = [self._values.copy() for _ in range(comm.size)] if codec else []
        self._accept, self._version, self._lock = accept, 0, Lock()
        self._owner, self._hands = comm.rank, 0
        self._sent = self._received = 0

    def add(self, rank: int, data: memoryview, version: int) -> int:
        """Add a contribution of a worker, made from ``version``; returns its staleness.

        A version is the number of contributions so far, dropped ones included.
        """
        with self._lock:
            staleness = self._version - version
            if staleness < 0:
                raise CommError(
                    f"version {version} is still to come: this shard has {self._version}"
                )
            factor = self._accept(staleness)
            if factor and self._values.size:
                if self._codec:
                    decode(CODES[self._codec], data, self._pushed)
                else:
                    raw_bytes(self._pushed)[:] = data
                self._values.axpy(factor, self._pushed)
            self._version += 1
            if rank != self._owner:
                self._received += data.nbytes
            return staleness

    def copy(self, rank: int, into: memoryview, exact: bool) -> int:
        """Give worker ``rank`` the values, or the code of their difference; returns the version."""
        with self._lock:
            if exact or not self._codec:
                into[:] = raw_bytes(self._values)
                if self._codec:
                    self._held[rank].copy_from(self._values)
            elif self._values.size:
                code, held = CODES[self._codec], self._held[rank]
                far = self._values.copy().subtract(held)
                into[:] = encode(code, far, NDArray.zeros(far.shape))
                decode(code, into, far)
                held.add(far)
            if rank != self._owner:
                self._sent += into.nbytes
            return self._version

    def raise_hand(self, more: int) -> int:
        """Add to the number of raised hands, and return it."""
        with self._lock:
            self._hands += more
            return self._hands

    def take_moved(self) -> tuple[int, int]:
        """The bytes that other workers have pulled from here and pushed to here since last time."""
        with self._lock:
            moved = self._sent, self._received
            self._sent = self._received = 0
            return moved


def spans_of(comm: Comm, size: int) -> list[Span]:
    """The slice of a served buffer that each worker owns; none where there are many workers."""
    owners = comm.served_by()
    spans = dict(zip(owners, bounds(size, len(owners)), strict=True))
    ends = [end for _, end in spans.values()]
    found = []
    for rank in range(comm.size):
        at = ends[sum(one < rank for one in owners) - 1] if rank else 0
        found.append(spans.get(rank, (at, at)))
    return found


class ShardedServer(Server):
    """Splits pushes and pulls into the owners' parts, and codes them."""

    def __init__(self, comm: Comm, buffer: NDArray, mine: Shard, codec: Codec | None) -> None:
        self._comm, self._mine, self._codec = comm, mine, codec
        self._owners = comm.served_by()
        self._spans = spans_of(comm, buffer.size)
        self._held = buffer.copy() if codec else None

    def push(self, delta: NDArray, versions: Sequence[int]) -> list[int]:
        if self._codec:
            parts = self._comm.coder(self._codec, delta.size).encode_all(delta, self._spans)
        else:
            parts = [raw_bytes(delta[begin:end]) for begin, end in self._spans]
        found = [0] * len(parts)
        for owner in self._owners:
            found[owner] = self._push(owner, parts[owner], versions[owner])
        self._count(self._far(parts), 0)
        return found

    def pull(self, into: NDArray, exact: bool = False) -> list[int]:
        coded = self._codec is not None and not exact
        parts = [
            self._room(end - begin) if coded else raw_bytes(into[begin:end])
            for begin, end in self._spans
        ]
        versions = [0] * len(parts)
        for owner in self._owners:
            versions[owner] = self._pull(owner, parts[owner], not coded)
        if self._held is not None and self._codec is not None:
            if coded:
                for (begin, end), part in zip(self._spans, parts, strict=True):
                    if begin < end:
                        far = NDArray.empty((end - begin,))
                        decode(CODES[self._codec], part, far)
                        self._held[begin:end].add(far)
                into.copy_from(self._held)
            else:
                self._held.copy_from(into)
        self._count(0, self._far(parts))
        return versions

    def close(self) -> None:
        self._stop()
        self._count(0, 0)

    def _count(self, sent: int, received: int) -> None:
        """Count what this worker did, and what others did at its shard meanwhile."""
        more_sent, more_received = self._mine.take_moved()
        self._comm.count(sent + more_sent, received + more_received)

    def _room(self, size: int) -> memoryview:
        assert self._codec is not None
        return memoryview(bytearray(code_length(CODES[self._codec], size)))

    def _far(self, parts: Sequence[memoryview]) -> int:
        """The bytes that are other workers'."""
        return sum(part.nbytes for one, part in enumerate(parts) if one != self._comm.rank)

    @abstractmethod
    def _push(self, owner: int, data: memoryview, version: int) -> int: ...

    @abstractmethod
    def _pull(self, owner: int, into: memoryview, exact: bool) -> int: ...

    def _stop(self) -> None:
        """End what serves."""
