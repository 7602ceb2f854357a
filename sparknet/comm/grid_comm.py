"""GridComm: the operations of many workers, each of which is connected with few.

Means, gathers and broadcasts go along one axis of the grid after the other.  What one worker has
for another one (coded means) is handed on along the axes.  Pushes and pulls have connections of
their own, between all workers and the dozen that serve, made when there is a server.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparknet.comm.codecs import Codec
from sparknet.comm.collectives import Accept, Server, raw_bytes
from sparknet.comm.grid import Span
from sparknet.comm.mesh import DOWNWARD, UPWARD
from sparknet.comm.parameter_server import Shard, TcpServer
from sparknet.comm.wire import RECORD, Pipe, Wire
from sparknet.comm.wired_comm import WiredComm
from sparknet.errors import CommError
from sparknet.native import NDArray

_BLOCK = struct.Struct("!IIQ")
"""Of bytes that are handed on: from whom, to whom, how many."""
_CHUNK = RECORD // 4
LONGEST_OBJECT = 1 << 24

Blocks = dict[tuple[int, int], memoryview]


class GridComm(WiredComm):
    """What `TcpComm` does where not all workers are connected with each other."""

    _requests: Mapping[int, Mapping[int, Wire]] = {}
    """The connections to and from those that serve; none before there is a server."""
    _serving: TcpServer | None = None

    def server(self, buffer: NDArray, accept: Accept, codec: Codec | None = None) -> Server:
        if not self._requests:
            self._requests = self._open_requests()
        asking: dict[int, Wire] = {}
        serving: dict[int, Wire] = {}
        for one, wires in self._requests.items():
            up, down = (asking, serving) if one > self.rank else (serving, asking)
            for channel, wire in wires.items():
                (up if channel == UPWARD else down)[one] = wire
        shard = Shard(self, buffer, accept, codec)
        self._serving = TcpServer(self, buffer, shard, codec, asking, serving)
        return self._serving

    def close(self) -> None:
        if not self._closed:
            for wire in _all_of(self._requests):
                wire.end()
            if self._serving is not None:
                self._serving.join()
        super().close()

    def _open_requests(self) -> dict[int, dict[int, Wire]]:
        owners, requests = set(self.served_by()), {}
        for one in self._others:
            upper = max(one, self.rank) in owners
            lower = min(one, self.rank) in owners
            requests[one] = (UPWARD,) * upper + (DOWNWARD,) * lower
        wires = self._meet_again(self.gather, {one: of for one, of in requests.items() if of})
        addresses = {
            one: dict(zip(of, wires[one], strict=True)) for one, of in requests.items() if of
        }
        if self._lost:
            for wire in _all_of(addresses):
                wire.end()
        return addresses

    def _lose(self, rank: int, reason: str) -> None:
        super()._lose(rank, reason)
        for wire in _all_of(self._requests):
            wire.end()

    def _every_pipe(self) -> Iterator[Pipe]:
        yield from super()._every_pipe()
        yield from _all_of(self._requests)

    # -- buffers -------------------------------------------------------------------------

    def _mean(self, buffer: NDArray, weights: Sequence[float]) -> None:
        with self._operation("taking a mean"):
            self._gather_sums(buffer, buffer, weights)
            self._spread(buffer)

    def _reduce_scatter(self, buffer: NDArray, weights: Sequence[float]) -> None:
        with self._operation("taking a mean"):
            sums, (begin, end) = NDArray.empty(buffer.shape), self.bounds(buffer.size)[self.rank]
            self._gather_sums(buffer, sums, weights)
            host, guest = self._pair()
            if guest is not None:
                self._send(guest, self._part(sums, (guest, guest + 1)))
            if host is not None:
                self._take(host, self._part(sums, (self.rank, self.rank + 1)))
            if begin < end:
                buffer[begin:end].copy_from(sums[begin:end])

    def _all_gather(self, buffer: NDArray) -> None:
        with self._operation("exchanging bytes"):
            host, guest = self._pair()
            if host is not None:
                self._send(host, self._part(buffer, (self.rank, self.rank + 1)))
            if guest is not None:
                self._take(guest, self._part(buffer, (guest, guest + 1)))
            self._spread(buffer)

    def _gather_sums(self, buffer: NDArray, sums: NDArray, weights: Sequence[float]) -> None:
        """Take the mean of the slices of this worker's place; beside it lie parts of others'."""
        host, guest = self._pair()
        if host is not None:
            self._send(host, raw_bytes(buffer))
            return
        if guest is not None:
            of_both = list(weights[self.rank : guest + 1])
            self._average_with([self.rank, guest], -1, (0, self.size), buffer, sums, of_both)
            buffer = sums
        for axis in range(len(self.grid.axes)):
            line, shares = self.grid.line(self.rank, axis), self.grid.shares(self.rank, axis)
            for one, share in zip(line, shares, strict=True):
                if one != self.rank:
                    self._send(one, self._part(buffer, share))
            mine = shares[line.index(self.rank)]
            of_line = self.grid.sums(weights, self.rank, axis)
            self._average_with(line, axis, mine, buffer, sums, of_line)
            buffer = sums

    def _average_with(
        self,
        line: Sequence[int],
        axis: int,
        share: Span,
        buffer: NDArray,
        sums: NDArray,
        weights: Sequence[float],
    ) -> None:
        """Receive the others' parts of a share, and average them with this worker's."""
        begin, end = self._elements(buffer, share)
        if begin == end:
            return
        others = [one for one in line if one != self.rank]
        for one in others:
            self._expect(one, 4 * (end - begin))
        room = {one: NDArray.empty((min(_CHUNK, end - begin),)) for one in others}
        for low in range(begin, end, _CHUNK):
            high = min(low + _CHUNK, end)
            views = {one: part[: high - low] for one, part in room.items()}
            for one in others:
                self._receive(one, raw_bytes(views[one]))
            views[self.rank] = buffer[low:high]
            self.grid.partial(axis, [views[one] for one in line], weights, sums[low:high])

    def _spread(self, buffer: NDArray) -> None:
        """Send what each place has to all workers."""
        host, guest = self._pair()
        if host is not None:
            self._take(host, raw_bytes(buffer))
            return
        for axis in reversed(range(len(self.grid.axes))):
            line, shares = self.grid.line(self.rank, axis), self.grid.shares(self.rank, axis)
            mine = shares[line.index(self.rank)]
            for one in line:
                if one != self.rank:
                    self._send(one, self._part(buffer, mine))
            for one, share in zip(line, shares, strict=True):
                if one != self.rank:
                    self._take(one, self._part(buffer, share))
        if guest is not None:
            self._send(guest, raw_bytes(buffer))

    def _broadcast(self, whole: memoryview, root: int) -> None:
        """Hand it on, chunk by chunk: from the root along the first axis, and so on."""
        source, targets = self._ways(root)
        with self._operation("exchanging bytes"):
            if not whole.nbytes:
                return
            if source is not None:
                self._expect(source, whole.nbytes)
            for one in targets:
                self._announce(one, whole.nbytes)
            for begin in range(0, whole.nbytes, RECORD):
                chunk = whole[begin : begin + RECORD]
                if source is not None:
                    self._receive(source, chunk)
                for one in targets:
                    self._go_on(one, chunk)

    def _ways(self, root: int) -> tuple[int | None, list[int]]:
        """From whom a broadcast comes to this worker, and to whom it goes on from here."""
        grid, (host, guest) = self.grid, self._pair()
        if host is not None:
            return (None, [host]) if root == self.rank else (host, [])
        source, first = guest if guest == root else None, 0
        for axis in reversed(range(len(grid.axes))):
            there = grid.coordinate(root, axis)
            if grid.coordinate(self.rank, axis) != there:
                source, first = grid.line(self.rank, axis)[there], axis + 1
                break
        targets = [
            one
            for axis in range(first, len(grid.axes))
            for one in grid.line(self.rank, axis)
            if one != self.rank
        ]
        return source, targets + ([] if guest in (None, root) else [guest])

    # -- small values --------------------------------------------------------------------

    def _gather(self, value: Any) -> list[Any]:
        text = json.dumps(value).encode()
        with self._operation("gathering"):
            host, guest = self._pair()
            if host is not None:
                self._send(host, memoryview(text))
                text = self._text(host)
            else:
                if guest is not None:
                    text = b",".join((text, self._text(guest)))
                for axis in reversed(range(len(self.grid.axes))):
                    line = self.grid.line(self.rank, axis)
                    for one in line:
                        if one != self.rank:
                            self._send(one, memoryview(text))
                    text = b",".join(text if one == self.rank else self._text(one) for one in line)
                if guest is not None:
                    self._send(guest, memoryview(text))
        values: list[Any] = json.loads(b"[" + text + b"]")
        if len(values) != self.size:
            raise CommError(f"{len(values)} values were gathered from {self.size} workers")
        return values

    def _text(self, one: int) -> bytes:
        length = self._announced(one)
        if length > LONGEST_OBJECT:
            raise CommError(f"worker {one} sent an object of {length} bytes: refused")
        data = bytearray(length)
        self._receive(one, memoryview(data))
        return bytes(data)

    # -- what is handed on ---------------------------------------------------------------

    def _exchange(self, outgoing: Sequence[memoryview], incoming: Sequence[memoryview]) -> None:
        longest = max(one.nbytes for one in (*outgoing, *incoming))
        most = 4 * self.size * (longest + _BLOCK.size)
        blocks = {(self.rank, one): outgoing[one] for one in self._others if outgoing[one].nbytes}
        with self._operation("exchanging bytes"):
            host, guest = self._pair()
            if host is not None:
                self._hand(host, blocks)
                blocks = self._handed(host, most)
            else:
                if guest is not None:
                    blocks |= self._handed(guest, most)
                for axis in range(len(self.grid.axes)):
                    line = self.grid.line(self.rank, axis)
                    for at, one in enumerate(line):
                        if one != self.rank:
                            self._hand(one, _towards(self, blocks, axis, at))
                    here = self.grid.coordinate(self.rank, axis)
                    blocks = _towards(self, blocks, axis, here)
                    for one in line:
                        if one != self.rank:
                            blocks |= self._handed(one, most)
                if guest is not None:
                    self._hand(guest, {way: one for way, one in blocks.items() if way[1] == guest})
        for (source, to), block in blocks.items():
            if to == self.rank:
                if block.nbytes != incoming[source].nbytes:
                    raise CommError(
                        f"worker {source} sends {block.nbytes} bytes where "
                        f"{incoming[source].nbytes} are expected: "
                        "the workers do not train the same net"
                    )
                incoming[source][:] = block

    def _hand(self, one: int, blocks: Blocks) -> None:
        head = b"".join(_BLOCK.pack(*way, block.nbytes) for way, block in blocks.items())
        self._announce(one, len(head))
        if head:
            self._go_on(one, memoryview(head))
        for block in blocks.values():
            self._go_on(one, block)

    def _handed(self, one: int, most: int) -> Blocks:
        length = self._announced(one)
        if length > most or length % _BLOCK.size:
            raise CommError(f"worker {one} announces {length} bytes: refused")
        head = memoryview(bytearray(length))
        if length:
            self._receive(one, head)
        ways = list(_BLOCK.iter_unpack(head))
        if sum(size for _, _, size in ways) > most or any(way[1] >= self.size for way in ways):
            raise CommError(f"worker {one} hands on more than there is: refused")
        blocks = {(source, to): memoryview(bytearray(size)) for source, to, size in ways}
        for block in blocks.values():
            self._receive(one, block)
        return blocks

    # -- one message ---------------------------------------------------------------------

    def _pair(self) -> tuple[int | None, int | None]:
        """This worker's host, if it is a guest, and its guest, if it is a host that has one."""
        host = self.rank - 1 if self.grid.is_guest(self.rank) else None
        return host, self.grid.guest(self.rank)

    def _take(self, one: int, into: memoryview) -> None:
        if into.nbytes:
            self._expect(one, into.nbytes)
            self._receive(one, into)

    def _elements(self, buffer: NDArray, share: Span) -> Span:
        """Return the span of the slices of some workers in a row."""
        spans = self.bounds(buffer.size)
        return spans[share[0]][0], spans[share[1] - 1][1]

    def _part(self, buffer: NDArray, share: Span) -> memoryview:
        begin, end = self._elements(buffer, share)
        return raw_bytes(buffer)[4 * begin : 4 * end]


def _towards(comm: GridComm, blocks: Blocks, axis: int, at: int) -> Blocks:
    """Return the blocks for those who stand there on an axis."""
    return {way: one for way, one in blocks.items() if comm.grid.coordinate(way[1], axis) == at}


def _all_of(requests: Mapping[int, Mapping[int, Wire]]) -> Iterator[Wire]:
    for wires in requests.values():
        yield from wires.values()
