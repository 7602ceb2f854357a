"""Mesh: direct connections between all workers of a run, made in one rendezvous.

Each worker binds a port (`Listener`), its address goes to the others by whatever means there is
(a pipe, a line to Spark's driver), and `connect` makes four connections for each pair: one for what
all do together, one for each side's requests, one for signs of life.  Then the port is closed:
no stranger can reach a run that is under way.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

from sparknet.dist.auth import answer, ask
from sparknet.errors import CommError

Address = tuple[str, int]

TOGETHER, UPWARD, DOWNWARD, PULSE = range(4)
"""Channels: UPWARD takes the requests of the lower rank, DOWNWARD those of the higher."""
CHANNELS = (TOGETHER, UPWARD, DOWNWARD, PULSE)

_WHO = struct.Struct("!IIH")
"""Caller's rank, listener's rank, channel; behind it, what run it is."""
_RUN = 16
_STRANGERS = 64
"""Callers beyond those awaited that may be in their handshakes at once."""
_QUEUE = 1024
"""Callers that the system holds until they are looked at."""
_HANDSHAKE = 10.0


class Listener:
    """A bound port that waits for the others."""

    def __init__(self, host: str = "127.0.0.1", ports: Sequence[int] = (0,)) -> None:
        self._socket = _bound(host, ports)
        name = self._socket.getsockname()
        self.address: Address = (name[0], name[1])

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def connect(
        self,
        rank: int,
        addresses: Sequence[Address],
        secret: bytes,
        deadline: float,
        run: str = "",
    ) -> list[list[socket.socket]]:
        """By rank, the connections of each channel; none for this worker itself.

        The port is closed afterwards, whatever happens.
        """
        meeting = _Meeting(rank, len(addresses), secret, run)
        accepting = threading.Thread(target=self._accept, args=(meeting,), daemon=True)
        accepting.start()
        try:
            until = time.monotonic() + deadline
            for other in range(rank):
                meeting.call(other, addresses[other], until)
            meeting.wait(until, deadline, addresses)
        except BaseException:
            meeting.abandon()
            raise
        finally:
            self.close()
            accepting.join()
            meeting.dismiss()
        return meeting.found()

    def _accept(self, meeting: _Meeting) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except ConnectionAbortedError:  # by a caller that was in the queue
                continue
            except OSError:
                return
            meeting.receive(connection)


class _Meeting:
    """Who has come so far."""

    def __init__(self, rank: int, size: int, secret: bytes, run: str) -> None:
        self._rank, self._size, self._secret = rank, size, secret
        self._run = sha256(run.encode()).digest()[:_RUN]
        self._table: dict[tuple[int, int], socket.socket] = {}
        self._changed = threading.Condition()
        self._over = False
        self._callers: dict[socket.socket, threading.Thread] = {}
        """Those in their handshakes, the oldest first."""

    def call(self, other: int, address: Address, until: float) -> None:
        for channel in CHANNELS:
            who = _WHO.pack(self._rank, other, channel) + self._run
            left = max(until - time.monotonic(), 0.001)
            try:
                connection = socket.create_connection(address, left)
            except OSError as error:
                raise CommError(
                    f"worker {other} at {_text(address)} cannot be reached: {error}"
                ) from error
            try:
                answer(connection, self._secret, who, left)
            except (OSError, CommError) as error:
                connection.close()
                raise CommError(f"worker {other} at {_text(address)}: {error}") from error
            self._keep(other, channel, connection)

    def receive(self, connection: socket.socket) -> None:
        """Look at a caller in a thread of its own: it may be a stranger, and slow.

        One too many drives out the one that has taken longest, since a worker takes no time.
        """
        thread = threading.Thread(target=self._look, args=(connection,), daemon=True)
        with self._changed:
            if len(self._callers) >= _STRANGERS + self._size * len(CHANNELS):
                _hang_up(next(iter(self._callers)))
            self._callers[connection] = thread
        thread.start()

    def dismiss(self) -> None:
        """Nobody else is awaited: strangers that are still here have to go."""
        with self._changed:
            left = dict(self._callers)
            for connection in left:
                _hang_up(connection)
        for thread in left.values():
            thread.join()

    def _look(self, connection: socket.socket) -> None:
        kept = False
        try:
            kept = self._admit(ask(connection, self._secret, _HANDSHAKE), connection)
        except OSError:  # a CommError is one too
            pass
        finally:
            with self._changed:
                del self._callers[connection]
                if not kept:
                    connection.close()

    def _admit(self, who: bytes, connection: socket.socket) -> bool:
        rank, listener, channel = _WHO.unpack_from(who)
        known = (
            who[_WHO.size : _WHO.size + _RUN] == self._run
            and listener == self._rank
            and self._rank < rank < self._size
            and channel in CHANNELS
        )
        return known and self._keep(rank, channel, connection)

    def _keep(self, rank: int, channel: int, connection: socket.socket) -> bool:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            if self._over or (rank, channel) in self._table:
                return False
            self._table[rank, channel] = connection
            self._changed.notify_all()
            return True

    def wait(self, until: float, deadline: float, addresses: Sequence[Address]) -> None:
        wanted = (self._size - 1) * len(CHANNELS)
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._table) == wanted, max(until - time.monotonic(), 0)
            )
            self._over = True
            missing = [
                rank
                for rank in range(self._size)
                if rank != self._rank and any((rank, one) not in self._table for one in CHANNELS)
            ]
        if missing:
            raise CommError(
                f"worker {missing[0]} at {_text(addresses[missing[0]])} did not come "
                f"within {deadline:g} s"
            )

    def abandon(self) -> None:
        with self._changed:
            self._over = True
            for connection in self._table.values():
                connection.close()

    def found(self) -> list[list[socket.socket]]:
        return [
            [] if rank == self._rank else [self._table[rank, channel] for channel in CHANNELS]
            for rank in range(self._size)
        ]


def _bound(host: str, ports: Sequence[int]) -> socket.socket:
    """Listening on the first of the ports that is free."""
    failure: OSError | None = None
    for port in ports:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family, backlog=_QUEUE)
        except OSError as error:
            failure = error
    raise CommError(f"no port of {list(ports)} can be opened on '{host}': {failure}")


def _hang_up(connection: socket.socket) -> None:
    """Wake whoever reads it; who does closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
