"""TcpServer: each worker serves its shard to the others over TCP while it computes."""

from __future__ import annotations

import selectors
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from time import perf_counter

from sparknet.errors import CommError
from sparknet.native import NDArray
from sparknet.training.codecs import Codec
from sparknet.training.comm import raw_bytes
from sparknet.training.shard import Shard, ShardedServer
from sparknet.training.thread_start import start
from sparknet.training.wire import Pipe, Wire, drain, fill
from sparknet.training.wired import WiredComm

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
        begun = perf_counter()
        pipe, where = self._asking[owner], self._comm.where(owner)
        with self._comm.guarded("pushing" if what == _PUSH else "pulling"):
            drain(pipe, _REQUEST.pack(what, number, data.nbytes), owner, where)
            drain(pipe, data, owner, where)
            answer = memoryview(bytearray(_ANSWER.size))
            fill(pipe, answer, owner, where)
            found, length = _ANSWER.unpack(answer)
            if length != into.nbytes:
                raise CommError(f"worker {owner} answers with {length} bytes, not {into.nbytes}")
            fill(pipe, into, owner, where)
        self._comm.traffic.seconds += perf_counter() - begun
        return int(found)

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
