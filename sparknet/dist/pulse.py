"""Pulse: signs of life between workers, so that one that is gone is told from one that is slow.

A thread sends a byte to every other worker four times within the deadline, and listens for
theirs.  Who was silent for longer, or hung up without a good-bye, is lost: whatever waits for
it is woken.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

_ALIVE, _GOODBYE = b".", b"!"
_LOST = struct.Struct("!cI")
_FOUND = b"#"
"""Ahead of the rank of a worker that the sender found lost."""
_READ = 4096

Lost = Callable[[int, str], None]


class Pulse:
    """Watches the others, by rank."""

    def __init__(self, peers: Mapping[int, socket.socket], deadline: float, lost: Lost) -> None:
        self._peers, self._deadline, self._lost = dict(peers), deadline, lost
        self._heard = dict.fromkeys(peers, time.monotonic())
        self._wake, self._woken = socket.socketpair()
        for connection in self._peers.values():
            connection.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="sparknet-pulse", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say good-bye and stop."""
        self._tell(_GOODBYE)
        self._wake.close()
        self._thread.join()
        self._woken.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ, None)
            for rank, connection in self._peers.items():
                selector.register(connection, selectors.EVENT_READ, rank)
            beat = self._deadline / 4
            next_beat = time.monotonic()
            while True:
                if time.monotonic() >= next_beat:
                    self._tell(_ALIVE)
                    next_beat = time.monotonic() + beat
                for key, _ in selector.select(max(next_beat - time.monotonic(), 0)):
                    if key.data is None:
                        return
                    if not self._hear(key.data):
                        selector.unregister(key.fileobj)
                self._check()

    def _tell(self, message: bytes) -> None:
        for connection in self._peers.values():
            with suppress(OSError):
                connection.send(message)

    def _report(self, rank: int, reason: str) -> None:
        """Tell the others first: they see this worker's connections close before long."""
        self._tell(_LOST.pack(_FOUND, rank))
        self._lost(rank, reason)

    def _hear(self, rank: int) -> bool:
        """Whether there is more to hear from a worker."""
        try:
            said = self._peers[rank].recv(_READ)
        except BlockingIOError:
            return True
        except OSError as error:
            said = b""
            reason = error.strerror or str(error)
        else:
            reason = "its process ended"
        if said and said.isascii() and not said.strip(_ALIVE):
            self._heard[rank] = time.monotonic()
            return True
        self._heard.pop(rank, None)
        said = said.lstrip(_ALIVE)
        if said.startswith(_FOUND) and len(said) >= _LOST.size:  # a good-bye may follow
            self._report(_LOST.unpack_from(said)[1], f"as worker {rank} noticed")
        elif said != _GOODBYE:
            self._report(rank, reason)
        return False

    def _check(self) -> None:
        now = time.monotonic()
        for rank, heard in list(self._heard.items()):
            if now - heard > self._deadline:
                del self._heard[rank]
                self._report(rank, f"no sign of life for {self._deadline:g} s")
