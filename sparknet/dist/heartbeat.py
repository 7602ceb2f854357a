"""Heartbeats: messages between workers that tell a lost worker from a slow one.

A thread sends a heartbeat to every other worker four times within the deadline, and listens for
theirs.  A worker that was silent for longer, or hung up without a good-bye, is lost, and whatever
waits for it is woken.  A worker that was itself paused (a suspended machine, a stopped container)
heard nobody meanwhile, so it restarts the time of all others.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from sparknet.dist.threads import start
from sparknet.dist.wire import Wire

_MESSAGE = struct.Struct("!cI")
"""The kind of a message, and the rank that it is about."""
_ALIVE, _GOODBYE, _FOUND = b".", b"!", b"#"
_READ = 4096

Lost = Callable[[int, str], None]


class _Peer:
    """Another worker, with the time of its last heartbeat."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
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
        self._unsent += self._wire.sealed(_MESSAGE.pack(kind, rank))
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
        found = []
        while len(self._unread) >= self._size:
            sealed, self._unread = self._unread[: self._size], self._unread[self._size :]
            found.append(_MESSAGE.unpack(self._wire.opened(sealed)))
        return found


class Heartbeats:
    """Sends heartbeats to the other workers and watches theirs."""

    def __init__(self, wires: Mapping[int, Wire], deadline: float, lost: Lost) -> None:
        self._peers = {rank: _Peer(wire) for rank, wire in wires.items()}
        self._deadline, self._lost = deadline, lost
        self._beat = deadline / 4
        self._watched = set(self._peers)
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

    def _report(self, rank: int, reason: str) -> None:
        """Report a lost worker, to the others first: this worker's connections close soon."""
        self._tell(_FOUND, rank)
        self._lost(rank, reason)

    def _hear(self, rank: int) -> bool:
        """Handle a worker's messages; returns whether more can follow."""
        peer = self._peers[rank]
        try:
            said = peer.read()
        except (OSError, EOFError) as error:
            self._watched.discard(rank)
            self._report(rank, getattr(error, "strerror", None) or str(error))
            return False
        peer.heard = time.monotonic()
        for kind, about in said:
            if kind == _ALIVE:
                continue
            self._watched.discard(rank)
            if kind == _FOUND:  # a good-bye may follow
                self._report(about, f"as worker {rank} noticed")
            return False
        return True

    def _forgive(self) -> None:
        """Restart the time of all workers, because this process was paused and could not listen."""
        now = time.monotonic()
        for peer in self._peers.values():
            peer.heard = now

    def _check(self) -> None:
        now = time.monotonic()
        for rank in list(self._watched):
            if now - self._peers[rank].heard > self._deadline:
                self._watched.discard(rank)
                self._report(rank, f"no heartbeat for {self._deadline:g} s")
