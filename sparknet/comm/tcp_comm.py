"""TcpComm: the comm of workers in several processes and machines, connected directly.

A mean is a reduce-scatter and an all-gather: each worker receives its slice from all others, takes
the mean chunk by chunk, and sends every chunk on as soon as it is done, while the next ones still
come in.  More workers than a dozen are connected as a grid has it (`sparknet.comm.grid_comm`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sparknet.comm.codecs import Codec
from sparknet.comm.collectives import Accept, Comm, Server, Traffic, raw_bytes
from sparknet.comm.grid import grid_of
from sparknet.comm.grid_comm import LONGEST_OBJECT, GridComm
from sparknet.comm.mesh import (
    CHANNELS,
    DOWNWARD,
    HEARTBEATS,
    TOGETHER,
    UPWARD,
    Address,
    Listener,
    Wanted,
)
from sparknet.comm.parameter_server import Shard, TcpServer
from sparknet.comm.wire import HMAC, RECORD, Wire
from sparknet.errors import CommError
from sparknet.native import NDArray

_CHUNK = RECORD // 4
"""Numbers that are received, averaged and sent on at a time: one record."""


class TcpComm(GridComm):
    """A comm over TCP; `TcpComm.connect` makes it, on all workers at once."""

    @classmethod
    def connect(
        cls,
        listener: Listener,
        rank: int,
        addresses: Sequence[Address],
        secret: bytes,
        deadline: float = 60.0,
        run: str = "",
        seal: str = HMAC,
        generation: int = 0,
    ) -> TcpComm:
        """Connect to the other workers; ``addresses`` are their listeners', by rank."""
        grid = grid_of(len(addresses))
        channels = CHANNELS if grid.is_direct else (TOGETHER, HEARTBEATS)
        counts = dict.fromkeys(grid.links(rank), channels)
        wires = listener.connect(rank, addresses, secret, deadline, run, seal, counts)
        comm = cls(rank, addresses, wires, deadline, generation)
        comm._meet_again = partial(_meet_again, listener, rank, secret, deadline, run, seal)
        try:
            comm._share_memory()
            comm.traffic = Traffic()
        except BaseException:
            comm.close()
            raise
        return comm

    def server(self, buffer: NDArray, accept: Accept, codec: Codec | None = None) -> Server:
        if not self.grid.is_direct:
            return super().server(buffer, accept, codec)
        asking, serving = {}, {}
        for one in self._others:
            lower = one < self.rank
            asking[one] = self._pipes[one][DOWNWARD if lower else UPWARD]
            serving[one] = self._pipes[one][UPWARD if lower else DOWNWARD]
        shard = Shard(self, buffer, accept, codec)
        return TcpServer(self, buffer, shard, codec, asking, serving)

    # -- what goes over the wire -----------------------------------------------------------

    def _exchange(self, outgoing: Sequence[memoryview], incoming: Sequence[memoryview]) -> None:
        if not self.grid.is_direct:
            super()._exchange(outgoing, incoming)
            return
        with self._operation("exchanging bytes"):
            for one in self._others:
                self._send(one, outgoing[one])
            for one in self._others:
                if incoming[one].nbytes:
                    self._expect(one, incoming[one].nbytes)
                    self._receive(one, incoming[one])

    def _mean(self, buffer: NDArray, weights: Sequence[float]) -> None:
        """Average with the reduce-scatter and the all-gather overlapped."""
        if not self.grid.is_direct:
            super()._mean(buffer, weights)
            return
        with self._operation("taking a mean"):
            self._average(buffer, weights)

    def _average(self, buffer: NDArray, weights: Sequence[float]) -> None:
        spans = self.bounds(buffer.size)
        begin, end = spans[self.rank]
        whole, mine = raw_bytes(buffer), buffer[begin:end]
        chunks = [(at, min(at + _CHUNK, end - begin)) for at in range(0, end - begin, _CHUNK)]
        parts = [NDArray.empty((min(_CHUNK, end - begin),)) for _ in self._all]
        for one in self._others:
            first, last = spans[one]
            self._send(one, whole[4 * first : 4 * last])
            if mine.size:
                self._announce(one, 4 * mine.size)
        for one in self._others if mine.size else ():
            self._expect(one, 4 * mine.size)
        for low, high in chunks:
            views = [part[: high - low] for part in parts]
            views[self.rank] = mine[low:high]
            for one in self._others:
                self._receive(one, raw_bytes(views[one]))
            NDArray.weighted_mean(views, weights, mine[low:high])
            for one in self._others:
                self._go_on(one, whole[4 * (begin + low) : 4 * (begin + high)])
        for one in self._others:
            first, last = spans[one]
            if last > first:
                self._expect(one, 4 * (last - first))
                self._receive(one, whole[4 * first : 4 * last])

    def _reduce_scatter(self, buffer: NDArray, weights: Sequence[float]) -> None:
        way = Comm if self.grid.is_direct else GridComm
        way._reduce_scatter(self, buffer, weights)

    def _all_gather(self, buffer: NDArray) -> None:
        way = Comm if self.grid.is_direct else GridComm
        way._all_gather(self, buffer)

    def _broadcast(self, whole: memoryview, root: int) -> None:
        way = Comm if self.grid.is_direct else GridComm
        way._broadcast(self, whole, root)

    def _gather(self, value: Any) -> list[Any]:
        if not self.grid.is_direct:
            return super()._gather(value)
        text = json.dumps(value).encode()
        values: list[Any] = [None] * self.size
        values[self.rank] = json.loads(text)
        with self._operation("gathering"):
            for one in self._others:
                self._send(one, memoryview(text))
            for one in self._others:
                length = self._announced(one)
                if length > LONGEST_OBJECT:
                    raise CommError(f"worker {one} sent an object of {length} bytes: refused")
                data = bytearray(length)
                self._receive(one, memoryview(data))
                values[one] = json.loads(data)
        return values


def _meet_again(
    listener: Listener,
    rank: int,
    secret: bytes,
    deadline: float,
    run: str,
    seal: str,
    gather: Callable[[Any], list[Any]],
    wanted: Wanted,
) -> list[list[Wire]]:
    """Make further connections, through a port that is open meanwhile."""
    again = listener.again()
    try:
        addresses = [(str(host), int(port)) for host, port in gather(again.address)]
    except BaseException:
        again.close()
        raise
    return again.connect(rank, addresses, secret, deadline, f"{run}/again", seal, wanted, False)
