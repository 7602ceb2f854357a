"""TcpServer: each worker serves its shard to the others over TCP while it computes."""

from __future__ import annotations

import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

from sparknet.errors import CommError, PeerLost
from sparknet.native import NDArray
from sparknet.training.comm import raw_bytes
from sparknet.training.shard import Shard, ShardedServer
from sparknet.training.thread_start import start
from sparknet.training.wire import Pipe

if TYPE_CHECKING:
    from sparknet.training.tcp import TcpComm

_REQUEST = struct.Struct("!cQQ")
"""The kind of a request, a version, and the number of bytes that follow."""
_ANSWER = struct.Struct("!QQ")
"""A version or a staleness, and the number of bytes that follow."""
_PUSH, _PULL, _END = b"+", b"-", b"."


def fill(pipe: Pipe, into: memoryview, rank: int, where: str) -> None:
    """Fill a buffer from a connection."""
    try:
        pipe.receive(into)
    except (OSError, EOFError) as error:
        raise PeerLost(rank, where, _reason(error)) from None


def drain(pipe: Pipe, data: bytes | memoryview, rank: int, where: str) -> None:
    """Send all of a buffer."""
    try:
        pipe.send(data)
    except OSError as error:
        raise PeerLost(rank, where, _reason(error)) from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class TcpServer(ShardedServer):
    """Sends requests to each worker on one connection, and answers its requests on another."""

    def __init__(
        self,
        comm: TcpComm,
        size: int,
        shard: Shard,
        asking: Mapping[int, Pipe],
        serving: Mapping[int, Pipe],
    ) -> None:
        super().__init__(comm.bounds(size))
        self._comm, self._shard, self._asking = comm, shard, asking
        self._threads = [
            threading.Thread(target=self._serve, args=(one, pipe), daemon=True)
            for one, pipe in serving.items()
        ]
        for thread in self._threads:
            start(thread)

    def close(self) -> None:
        for pipe in self._asking.values():
            with suppress(OSError):
                pipe.send(_REQUEST.pack(_END, 0, 0))
        for thread in self._threads:
            thread.join()

    # -- asking --------------------------------------------------------------------------

    def _push(self, owner: int, part: NDArray, version: int) -> int:
        if owner == self._comm.rank:
            return self._shard.add(part, version)
        data = raw_bytes(part)
        staleness, length = self._ask(owner, _PUSH, version, data)
        if length:
            raise CommError(f"worker {owner} answers a push with {length} bytes")
        return staleness

    def _pull(self, owner: int, into: NDArray) -> int:
        if owner == self._comm.rank:
            return self._shard.copy(into)
        version, length = self._ask(owner, _PULL, 0, memoryview(b""))
        if length != into.nbytes:
            raise CommError(f"worker {owner} answers a pull of {into.nbytes} bytes with {length}")
        with self._comm.guarded("pulling"):
            fill(self._asking[owner], raw_bytes(into), owner, self._comm.where(owner))
        self._comm.traffic.received += length
        return version

    def _ask(self, owner: int, what: bytes, version: int, data: memoryview) -> tuple[int, int]:
        begun = perf_counter()
        pipe, where = self._asking[owner], self._comm.where(owner)
        with self._comm.guarded("pushing" if what == _PUSH else "pulling"):
            drain(pipe, _REQUEST.pack(what, version, data.nbytes), owner, where)
            drain(pipe, data, owner, where)
            answer = memoryview(bytearray(_ANSWER.size))
            fill(pipe, answer, owner, where)
        self._comm.traffic.sent += data.nbytes
        self._comm.traffic.seconds += perf_counter() - begun
        number, length = _ANSWER.unpack(answer)
        return int(number), int(length)

    # -- answering -----------------------------------------------------------------------

    def _serve(self, one: int, pipe: Pipe) -> None:
        """Answer a worker's requests until it ends or is lost."""
        begin, end = self._shard.span
        values = NDArray.empty((end - begin,))
        with suppress(OSError):
            while True:
                request = memoryview(bytearray(_REQUEST.size))
                fill(pipe, request, one, "")
                what, version, length = _REQUEST.unpack(request)
                if what == _PUSH and length == values.nbytes:
                    fill(pipe, raw_bytes(values), one, "")
                    pipe.send(_ANSWER.pack(self._shard.add(values, version), 0))
                elif what == _PULL and not length:
                    version = self._shard.copy(values)
                    pipe.send(_ANSWER.pack(version, values.nbytes))
                    pipe.send(raw_bytes(values))
                elif what == _END:
                    return
                else:
                    pipe.end()
