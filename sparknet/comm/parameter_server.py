"""A parameter server in slices: each worker serves its shard to the others while it computes."""

from __future__ import annotations

import selectors
import struct
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from time import perf_counter

from sparknet.comm.codecs import CODES, Codec
from sparknet.comm.collectives import Accept, Comm, Server, raw_bytes
from sparknet.comm.grid import Span, bounds
from sparknet.comm.threads import start
from sparknet.comm.wire import Pipe, Wire, drain, fill
from sparknet.comm.wired_comm import WiredComm
from sparknet.errors import CommError
from sparknet.native import NDArray
from sparknet.native.codes import code_length, decode, encode


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
                code, copy = CODES[self._codec], self._held[rank]
                far = self._values.copy().subtract(copy)
                into[:] = encode(code, far, NDArray.zeros(far.shape))
                decode(code, into, far)
                copy.add(far)
            if rank != self._owner:
                self._sent += into.nbytes
            return self._version

    def raise_hand(self, more: int) -> int:
        """Add to the number of raised hands, and return it."""
        with self._lock:
            self._hands += more
            return self._hands

    def take_moved(self) -> tuple[int, int]:
        """Return the bytes that other workers have pulled from here and pushed to here since
        last time.
        """
        with self._lock:
            moved = self._sent, self._received
            self._sent = self._received = 0
            return moved


def spans_of(comm: Comm, size: int) -> list[Span]:
    """Return the slice of a served buffer that each worker owns; none where there are many
    workers.
    """
    owners = comm.served_by()
    spans = dict(zip(owners, bounds(size, len(owners)), strict=True))
    ends = [end for _, end in spans.values()]
    shares = []
    for rank in range(comm.size):
        at = ends[sum(one < rank for one in owners) - 1] if rank else 0
        shares.append(spans.get(rank, (at, at)))
    return shares


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
        ages = [0] * len(parts)
        for owner in self._owners:
            ages[owner] = self._push(owner, parts[owner], versions[owner])
        self._count(self._far(parts), 0)
        return ages

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
        """Return the bytes that are other workers'."""
        return sum(part.nbytes for one, part in enumerate(parts) if one != self._comm.rank)

    @abstractmethod
    def _push(self, owner: int, data: memoryview, version: int) -> int: ...

    @abstractmethod
    def _pull(self, owner: int, into: memoryview, exact: bool) -> int: ...

    def _stop(self) -> None:
        """End what serves."""


_REQUEST = struct.Struct("!cQQ")
"""The kind of a request, a version or a hand, and the number of bytes that follow."""
_ANSWER = struct.Struct("!QQ")
"""A version, a staleness or a number of hands, and the number of bytes that follow."""
_PUSH, _PULL, _EXACT, _HAND, _END = b"+", b"-", b"=", b"#", b"."
_NOTHING = memoryview(b"")


class TcpServer(ShardedServer):
    """Sends requests to each worker on one connection, and answers its requests on another."""

    _comm: WiredComm

    def __init__(
        self,
        comm: WiredComm,
        buffer: NDArray,
        shard: Shard,
        codec: Codec | None,
        asking: Mapping[int, Pipe],
        serving: Mapping[int, Pipe],
    ) -> None:
        super().__init__(comm, buffer, shard, codec)
        self._asking = asking
        if comm.grid.is_direct:
            works = [partial(self._serve, one, pipe) for one, pipe in serving.items()]
        else:
            wires = {one: pipe for one, pipe in serving.items() if isinstance(pipe, Wire)}
            works = [partial(self._serve_all, wires)] if wires else []
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in self._threads:
            start(thread)

    def _stop(self) -> None:
        for pipe in self._asking.values():
            with suppress(OSError):
                pipe.send(_REQUEST.pack(_END, 0, 0))
        self.join()

    def join(self) -> None:
        """Wait until nobody is served any more: all have ended, or their connections have."""
        for thread in self._threads:
            thread.join()

    # -- asking --------------------------------------------------------------------------

    def _push(self, owner: int, data: memoryview, version: int) -> int:
        if owner == self._comm.rank:
            return self._mine.add(owner, data, version)
        return self._ask(owner, _PUSH, version, data)

    def _pull(self, owner: int, into: memoryview, exact: bool) -> int:
        if owner == self._comm.rank:
            return self._mine.copy(owner, into, exact)
        return self._ask(owner, _EXACT if exact else _PULL, 0, into=into)

    def raise_hand(self, more: int) -> int:
        if self._comm.rank == 0:
            return self._mine.raise_hand(more)
        return self._ask(0, _HAND, more)

    def _ask(
        self,
        owner: int,
        what: bytes,
        number: int,
        data: memoryview = _NOTHING,
        into: memoryview = _NOTHING,
    ) -> int:
        start = perf_counter()
        pipe, where = self._asking[owner], self._comm.where(owner)
        with self._comm.guarded("pushing" if what == _PUSH else "pulling"):
            drain(pipe, _REQUEST.pack(what, number, data.nbytes), owner, where)
            drain(pipe, data, owner, where)
            answer = memoryview(bytearray(_ANSWER.size))
            fill(pipe, answer, owner, where)
            status, length = _ANSWER.unpack(answer)
            if length != into.nbytes:
                raise CommError(f"worker {owner} answers with {length} bytes, not {into.nbytes}")
            fill(pipe, into, owner, where)
        self._comm.traffic.seconds += perf_counter() - start
        return int(status)

    # -- answering -----------------------------------------------------------------------

    def _serve(self, one: int, pipe: Pipe) -> None:
        """Answer a worker's requests until it ends or is lost."""
        exact, coded = self._rooms()
        while self._answer(one, pipe, exact, coded):
            pass

    def _serve_all(self, serving: Mapping[int, Wire]) -> None:
        """Answer many workers' requests, one after the other."""
        exact, coded = self._rooms()
        with selectors.DefaultSelector() as selector:
            for one, wire in serving.items():
                selector.register(wire.connection, selectors.EVENT_READ, one)
            while selector.get_map():
                for key, _ in selector.select():
                    if not self._answer(key.data, serving[key.data], exact, coded):
                        selector.unregister(key.fileobj)

    def _rooms(self) -> tuple[memoryview, memoryview]:
        """Memory for this worker's slice, and for its code."""
        begin, end = self._spans[self._comm.rank]
        exact = raw_bytes(NDArray.empty((end - begin,)))
        return exact, self._room(end - begin) if self._codec else exact

    def _answer(self, one: int, pipe: Pipe, exact: memoryview, coded: memoryview) -> bool:
        """Answer a worker's next request; False when it has ended or is lost."""
        with suppress(OSError):
            request = memoryview(bytearray(_REQUEST.size))
            fill(pipe, request, one, "")
            what, number, length = _REQUEST.unpack(request)
            if what == _PUSH and length == coded.nbytes:
                fill(pipe, coded, one, "")
                pipe.send(_ANSWER.pack(self._mine.add(one, coded, number), 0))
            elif what in (_PULL, _EXACT) and not length:
                values = exact if what == _EXACT else coded
                version = self._mine.copy(one, values, what == _EXACT)
                pipe.send(_ANSWER.pack(version, values.nbytes))
                pipe.send(values)
            elif what == _HAND and number <= 1 and not length:
                pipe.send(_ANSWER.pack(self._mine.raise_hand(number), 0))
            elif what == _END:
                return False
            else:
                pipe.end()
            return True
        return False
