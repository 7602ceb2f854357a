"""WiredComm: a worker's connections to others, and the messages that go over them.

The connections are those of one generation of workers, whose number is part of each record's: when
a worker is lost, those that are left make a new comm, with the next number.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from time import process_time
from typing import Any

from sparknet.comm.collectives import Comm
from sparknet.comm.heartbeat import Heartbeats
from sparknet.comm.mesh import TOGETHER, Address, Wanted
from sparknet.comm.shared_memory import SharedFile, machine, make_offer, neighbours, open_offer
from sparknet.comm.threads import start
from sparknet.comm.wire import Pipe, Wire, fill
from sparknet.errors import CommError, PeerLost

_HEADER = struct.Struct("!QQ")
"""The number of the operation, and the number of bytes that follow."""
_OF_A_GENERATION = 40
"""The bits of the number for operations; those above are the generation's."""
_PATIENCE = 1.0
"""Seconds in which the heartbeats say who is lost, when a connection broke."""

Piece = memoryview | threading.Event
Meet = Callable[[Callable[[Any], list[Any]], Wanted], list[list[Wire]]]
"""Makes further connections; it is given a gather, and what is wanted."""


class _Sender(threading.Thread):
    """Sends what is put in its queue to one worker, while the main thread receives."""

    def __init__(self, pipe: Pipe, rank: int) -> None:
        super().__init__(name=f"sparknet-send-{rank}", daemon=True)
        self.pipe = pipe
        self.queue: SimpleQueue[Piece | None] = SimpleQueue()
        self.failed = False
        start(self)

    def run(self) -> None:
        while (piece := self.queue.get()) is not None:
            if isinstance(piece, threading.Event):
                piece.set()
            elif not self.failed:
                try:
                    self.pipe.send(piece)
                except OSError:
                    self.failed = True


class WiredComm(Comm):
    """Connections to other workers, and messages on them."""

    def __init__(
        self,
        rank: int,
        addresses: Sequence[Address],
        wires: Sequence[Sequence[Wire]],
        deadline: float,
        generation: int = 0,
    ) -> None:
        super().__init__(rank, len(addresses), deadline)
        self._addresses = addresses
        self._pipes: list[list[Pipe]] = [list(one) for one in wires]
        self._others = [one for one in range(self.size) if one != rank]
        self._links = self.grid.links(rank)
        """The others that this worker is connected with."""
        self._number = generation << _OF_A_GENERATION
        self._lost: dict[int, str] = {}
        self._known = threading.Event()
        self._broken: CommError | None = None
        self._closed = False
        self._doing = "computes"
        self._meet_again: Meet = _no_meeting
        self._awaited: int | None = None
        """The worker whose bytes are waited for."""
        self._senders = {one: _Sender(wires[one][TOGETHER], one) for one in self._links}
        beats = {one: wires[one][-1] for one in self._links}
        pipes = {one: self._pipes[one] for one in self._links}
        self._heartbeats = Heartbeats(beats, pipes, deadline, self._lose)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._heartbeats.close()
        for sender in self._senders.values():
            sender.queue.put(None)
        is_broken = self._lost or (self._under_way is not None and self._under_way.lasts)
        for pipe in self._every_pipe():
            pipe.end(socket.SHUT_RDWR if is_broken else socket.SHUT_WR)
        if self._under_way is not None:
            self._under_way.join()
        for sender in self._senders.values():
            sender.join()
        for pipe in self._every_pipe():
            pipe.close()

    def _every_pipe(self) -> Iterator[Pipe]:
        """Yield all connections to the others."""
        for one in self._links:
            yield from self._pipes[one]

    def _share_memory(self) -> None:
        """Let what goes to workers on this machine go through memory."""
        machines = [str(one) for one in self._gather(machine())]
        near = [neighbours(machines, rank, self.grid.links(rank)) for rank in self._all]
        if not any(near):
            return
        above = [[one for one in near[rank] if one > rank] for rank in self._all]
        channels = max((len(self._pipes[one]) for one in self._links), default=1) - 1
        offer = make_offer(len(above[self.rank]), channels)
        try:
            offers = self._gather(offer and offer.told)
            files: dict[int, SharedFile | None] = {
                one: open_offer(offers[one], len(above[one]), channels)
                for one in near[self.rank]
                if one < self.rank
            }
            mapped = self._gather([one for one, file in files.items() if file])
        finally:
            if offer:
                offer.close()
        for one, file in files.items():
            if file:
                self._take_pipes(one, file.pipes(above[one].index(self.rank), made=False))
        for place, one in enumerate(above[self.rank]):
            if offer and self.rank in mapped[one]:
                self._take_pipes(one, offer.file.pipes(place, made=True))

    def _take_pipes(self, one: int, pipes: Sequence[Pipe]) -> None:
        """Replace the connections to a worker, which both have read to their end."""
        for old in self._pipes[one][:-1]:
            old.close()
        self._pipes[one][:-1] = pipes
        self._senders[one].pipe = pipes[TOGETHER]
        if self._lost:
            for pipe in pipes:
                pipe.end()

    # -- one message -----------------------------------------------------------------------

    @contextmanager
    def _operation(self, what: str) -> Iterator[None]:
        """Wraps a collective operation; everything has been sent at its end."""
        self._number += 1
        with self.guarded(what):
            yield
            self._flush()

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Raises PeerLost with the lost worker if a connection breaks."""
        if self._closed:
            raise CommError("this comm was closed")
        before, self._doing = self._doing, what
        try:
            yield
        except PeerLost as lost:
            raise self._failure(what, lost) from None
        finally:
            self._doing, self._awaited = before, None

    def _failure(self, what: str, lost: PeerLost) -> CommError:
        """Return the lost worker: the first that heartbeats found, else the one whose
        connection broke.
        """
        self._known.wait(_PATIENCE)
        if self._broken is not None:
            return self._broken
        rank, reason = next(iter(self._lost.items()), (lost.rank, lost.what))
        return PeerLost(rank, self.where(rank), reason, what)

    def report(self) -> dict[str, Any]:
        """Return what this worker does, and a value that changes as long as it gets on."""
        traffic, awaited = self.traffic, self._awaited
        doing = self._doing if awaited is None else f"waits for worker {awaited}, {self._doing}"
        busy = int(process_time())
        return {"doing": doing, "moved": [self._number, traffic.sent, traffic.received, busy]}

    def fail(self, error: CommError) -> None:
        """Let all that waits for other workers end in an error; any thread may call."""
        if self._closed:
            return
        if isinstance(error, PeerLost):
            self._lose(error.rank, error.what)
            return
        self._broken = error
        self._lose(self.rank, str(error))

    def where(self, rank: int) -> str:
        """Return a worker's address."""
        host, port = self._addresses[rank]
        return f"{host}:{port}"

    def _lose(self, rank: int, reason: str) -> None:
        """Called when a worker is lost: wakes all that wait for any worker."""
        self._lost.setdefault(rank, reason)
        self._known.set()
        for one in self._links:
            for pipe in self._pipes[one][:-1]:
                pipe.end()

    def _send(self, one: int, data: memoryview) -> None:
        """Announce and send bytes, after those still being sent."""
        if data.nbytes:
            self._announce(one, data.nbytes)
            self._go_on(one, data)

    def _announce(self, one: int, length: int) -> None:
        self._senders[one].queue.put(memoryview(_HEADER.pack(self._number, length)))

    def _go_on(self, one: int, data: memoryview) -> None:
        self.traffic.sent += data.nbytes
        self._senders[one].queue.put(data)

    def _flush(self) -> None:
        marks = {one: threading.Event() for one in self._links}
        for one, mark in marks.items():
            self._senders[one].queue.put(mark)
        for one, mark in marks.items():
            mark.wait()
            if self._senders[one].failed:
                raise PeerLost(one, self.where(one), "it takes no more bytes")

    def _expect(self, one: int, length: int) -> None:
        announced = self._announced(one)
        if announced != length:
            raise CommError(
                f"worker {one} sends {announced} bytes where {length} are expected: "
                "the workers do not train the same net"
            )

    def _announced(self, one: int) -> int:
        header = memoryview(bytearray(_HEADER.size))
        self._fill(one, header)
        number, length = _HEADER.unpack(header)
        if number != self._number:
            raise CommError(
                f"worker {one} is at operation {number}, this one at {self._number}: out of step"
            )
        return int(length)

    def _receive(self, one: int, into: memoryview) -> None:
        self.traffic.received += into.nbytes
        self._fill(one, into)

    def _fill(self, one: int, into: memoryview) -> None:
        self._awaited = one
        fill(self._pipes[one][TOGETHER], into, one, self.where(one))


def _no_meeting(gather: Callable[[Any], list[Any]], wanted: Wanted) -> list[list[Wire]]:
    raise CommError("this comm was not made by TcpComm.connect")
