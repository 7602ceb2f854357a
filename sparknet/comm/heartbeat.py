"""Heartbeats: messages between workers that tell a lost worker from a slow one.

A thread sends a heartbeat to every other worker four times within the deadline, and listens for
theirs.  A worker that was silent for longer, or hung up without a good-bye, is lost, and whatever
waits for it is woken.  A worker that was itself paused (a suspended machine, a stopped container)
heard nobody meanwhile, so it restarts the time of all others.

A heartbeat says how many bytes its sender has sent on each of its connections.  Who waits for
bytes that were sent, and gets none for the deadline, takes the other worker for lost as well: the
network swallows them.  Who waits for bytes that were not sent yet waits for a worker that computes.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sparknet.comm.mesh import HEARTBEATS
from sparknet.comm.threads import start
from sparknet.comm.wire import Pipe, Wire

_MESSAGE = struct.Struct(f"!cI{HEARTBEATS}Q")
"""The kind of a message, the rank that it is about, and the bytes sent on the other connections."""
_ALIVE, _GOODBYE, _FOUND, _LATE = b".", b"!", b"#", b"%"
_HEARD = {_FOUND: "as worker {} noticed", _LATE: "what it sends does not reach worker {}"}
"""What a worker says of another one that it has lost."""
_READ = 4096

Lost = Callable[[int, str], None]


class _Stall:
    """The time for which bytes on one connection are late."""

    def __init__(self) -> None:
        self._received, self._since = -1, 0.0

    def look(self, pipe: Pipe, sent: int, hung_up: bool, now: float) -> float:
        """Return the seconds for which a thread has waited for bytes that were sent."""
        late = pipe.awaits and (pipe.received < sent or hung_up)
        if not late or pipe.received != self._received:
            self._received, self._since = pipe.received, now
        return now - self._since

    def forgive(self, now: float) -> None:
        self._since = now


class _Peer:
    """Another worker, with the time of its last heartbeat."""

    def __init__(self, wire: Wire, pipes: Sequence[Pipe]) -> None:
        self._wire, self._pipes = wire, pipes
        self._sent: Sequence[int] = [0] * HEARTBEATS
        """The bytes that it has sent to this worker, by its last heartbeat."""
        self._stalls = [_Stall() for _ in self._sent]
        self.said_goodbye = False
        wire.connection.setblocking(False)
        self._size = wire.sealed_size(_MESSAGE.size)
        self._unsent = b""
        self._unread = b""
        self.heard = time.monotonic()

    @property
    def connection(self) -> socket.socket:
        return self._wire.connection

    def tell(self, kind: bytes, rank: int = 0) -> None:
        """Send a message; what the system's buffer cannot take goes with the next one."""
        counts = [pipe.sent for pipe in self._pipes[:-1]]
        counts += [0] * (HEARTBEATS - len(counts))
        self._unsent += self._wire.sealed(_MESSAGE.pack(kind, rank, *counts))
        with suppress(OSError):
            self._unsent = self._unsent[self.connection.send(self._unsent) :]

    def read(self) -> list[tuple[bytes, int]]:
        """Messages received; OSError or EOFError if there will be no more."""
        try:
            piece = self.connection.recv(_READ)
        except BlockingIOError:
            return []
        if not piece:
            raise EOFError("its process ended")
        self._unread += piece
        beats = []
        while len(self._unread) >= self._size:
            sealed, self._unread = self._unread[: self._size], self._unread[self._size :]
            kind, rank, *self._sent = _MESSAGE.unpack(self._wire.unseal(sealed))
            beats.append((kind, rank))
        return beats

    def late(self, deadline: float) -> str:
        """Return what is wrong with what it sends; empty if it comes."""
        now = time.monotonic()
        for pipe, position, stall in zip(self._pipes, self._sent, self._stalls, strict=False):
            if stall.look(pipe, position, self.said_goodbye, now) > deadline:
                count = position - pipe.received
                lacking = f"{count} bytes that it sent have" if count else "its end has"
                return f"{lacking} not come for {deadline:g} s"
        return ""

    def forgive(self) -> None:
        """Restart its time."""
        self.heard = time.monotonic()
        for stall in self._stalls:
            stall.forgive(self.heard)


class Heartbeats:
    """Sends heartbeats to the other workers and watches theirs."""

    def __init__(
        self,
        wires: Mapping[int, Wire],
        pipes: Mapping[int, Sequence[Pipe]],
        deadline: float,
        lost: Lost,
    ) -> None:
        """``pipes`` are the other ways to each worker, which may be replaced meanwhile."""
        self._peers = {rank: _Peer(wire, pipes[rank]) for rank, wire in wires.items()}
        self._deadline, self._lost = deadline, lost
        self._beat = deadline / 4
        self._watched = set(self._peers)
        """Workers whose heartbeats are due."""
        self._awaited = set(self._peers)
        """Workers whose bytes are waited for."""
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="sparknet-heartbeats", daemon=True)
        start(self._thread)

    def close(self) -> None:
        """Say good-bye and stop."""
        self._wake.close()
        self._thread.join()
        self._tell(_GOODBYE)
        self._woken.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ, None)
            for rank, peer in self._peers.items():
                selector.register(peer.connection, selectors.EVENT_READ, rank)
            next_beat = time.monotonic()
            while True:
                if time.monotonic() >= next_beat:
                    self._tell(_ALIVE)
                    next_beat = time.monotonic() + self._beat
                events = selector.select(max(next_beat - time.monotonic(), 0))
                if time.monotonic() > next_beat + self._beat:
                    self._forgive()
                for key, _ in events:
                    if key.data is None:
                        return
                    if not self._hear(key.data):
                        selector.unregister(key.fileobj)
                self._check()

    def _tell(self, kind: bytes, rank: int = 0) -> None:
        for peer in self._peers.values():
            peer.tell(kind, rank)

    def _report(self, rank: int, reason: str, kind: bytes = _FOUND) -> None:
        """Report a lost worker, to the others first: this worker's connections close soon."""
        self._tell(kind, rank)
        self._lost(rank, reason)

    def _hear(self, rank: int) -> bool:
        """Handle a worker's messages; returns whether more can follow."""
        peer = self._peers[rank]
        try:
            beats = peer.read()
        except (OSError, EOFError) as error:
            self._watched.discard(rank)
            self._report(rank, getattr(error, "strerror", None) or str(error))
            return False
        peer.heard = time.monotonic()
        for kind, about in beats:
            if kind == _ALIVE:
                continue
            self._watched.discard(rank)
            peer.said_goodbye |= kind == _GOODBYE
            if kind in _HEARD:  # a good-bye may follow
                self._report(about, _HEARD[kind].format(rank))
            return False
        return True

    def _forgive(self) -> None:
        """Restart the time of all workers, because this process was paused and could not listen."""
        for peer in self._peers.values():
            peer.forgive()

    def _check(self) -> None:
        now = time.monotonic()
        for rank in list(self._awaited):
            if late := self._peers[rank].late(self._deadline):
                self._awaited.discard(rank)
                self._watched.discard(rank)
                self._report(rank, late, _LATE)
        for rank in list(self._watched):
            if now - self._peers[rank].heard > self._deadline:
                self._watched.discard(rank)
                self._report(rank, f"no heartbeat for {self._deadline:g} s")
