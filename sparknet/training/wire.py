"""Pipe: bytes between two workers; Wire: a connection on which they travel as sealed records.

A piece is sent as records of `RECORD` bytes each, the last one shorter.  It is received as one
piece, or as several that begin and end at records.

No thread waits in the system for longer than a slice of the deadline, so that it can count what
it waited for in vain: slices in which this process itself was paused do not count.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress

from sparknet.training.handshake import Keys
from sparknet.training.seal import make_seal

RECORD = 1 << 21
"""The bytes of a record."""
_SMALL = 1 << 14
"""Records up to this size are copied next to their seal, and sent by one system call."""

_SLICES = 8
"""The slices of a deadline."""
_GRACE = 2
"""Further slices, in which who else watches the other end names it first."""

Buffer = bytes | bytearray | memoryview


class Pipe(ABC):
    """Both directions between two workers.  One thread may send while another one receives."""

    sent = received = 0
    """The bytes that were given to the network so far, seals included, and that came from it."""
    awaits = False
    """Whether a thread waits for bytes."""

    @abstractmethod
    def send(self, data: Buffer) -> None:
        """Send a buffer; OSError if the other end is gone."""

    @abstractmethod
    def receive(self, into: memoryview) -> None:
        """Fill a buffer; EOFError if the other end hung up, OSError if the connection breaks."""

    @abstractmethod
    def end(self, how: int = socket.SHUT_RDWR) -> None:
        """End one direction or both, which wakes all that wait for it at both ends."""

    @abstractmethod
    def close(self) -> None:
        """End both directions for good."""


class Silent(TimeoutError):
    """The other end was silent for the deadline."""


class Wire(Pipe):
    """A sealed connection.

    Both directions raise Silent when nothing moved for ``deadline`` seconds, unless somebody
    else watches `sent` and `received` (`sparknet.training.heartbeat`).
    """

    def __init__(
        self,
        connection: socket.socket,
        keys: Keys,
        seal: str,
        deadline: float = 60.0,
        is_watched: bool = True,
    ) -> None:
        self.connection = connection
        self._seal = make_seal(seal, keys)
        self._tag = memoryview(bytearray(self._seal.size))
        self._deadline, self._is_watched = deadline, is_watched
        self._failed = ""
        _set_slice(connection, deadline / _SLICES)

    def send(self, data: Buffer) -> None:
        for record in _records(data):
            self._send(record)

    def receive(self, into: memoryview) -> None:
        for record in _records(into):
            self._fill(record)
            self._fill(self._tag)
            clear = self._seal.open(record, self._tag)
            if clear is not None:
                record[:] = clear

    def sealed(self, message: bytes) -> bytes:
        """A short message with its seal, for a caller that sends it itself."""
        sealed = self._seal.seal(message)
        return sealed if self._seal.hides else message + sealed

    def opened(self, sealed: bytes) -> bytes:
        """The message that `sealed` sealed."""
        end = len(sealed) - self._seal.size
        message, tag = sealed[:end], sealed[end:]
        clear = self._seal.open(message, tag)
        return message if clear is None else clear

    def sealed_size(self, size: int) -> int:
        """The sealed length of a message of ``size`` bytes."""
        return size + self._seal.size

    def end(self, how: int = socket.SHUT_RDWR) -> None:
        with suppress(OSError):
            self.connection.shutdown(how)

    def close(self) -> None:
        self.connection.close()

    def _send(self, record: Buffer) -> None:
        sealed = self._seal.seal(record)
        if self._seal.hides:
            pieces: tuple[Buffer, ...] = (sealed,)
        elif len(record) <= _SMALL:
            pieces = (b"".join((record, sealed)),)
        else:
            pieces = (record, sealed) if sealed else (record,)
        # First, so that the other end learns of bytes that are on their way for too long.
        self.sent += sum(map(len, pieces))
        for piece in pieces:
            self._push(memoryview(piece))

    def _push(self, view: memoryview) -> None:
        done, vain, unread = 0, 0, 0
        while done < view.nbytes:
            try:
                done += self.connection.send(view[done:])
                vain = 0
            except BlockingIOError:
                before, unread = unread, _unread(self.connection)
                vain = vain + 1 if unread == before else 0  # one that talks is only busy
                self._check(vain, "it has taken no bytes")

    def _fill(self, view: memoryview) -> None:
        got, vain = 0, 0
        self.awaits = True
        try:
            while got < view.nbytes:
                try:
                    count = self.connection.recv_into(view[got:], 0, socket.MSG_WAITALL)
                except BlockingIOError:
                    vain += 1
                    self._check(vain, "nothing has come from it")
                    continue
                if not count:
                    raise EOFError("it closed the connection")
                got, vain = got + count, 0
                self.received += count
        finally:
            self.awaits = False

    def _check(self, vain: int, what: str) -> None:
        """Silent after a deadline in vain, and from then on after each slice."""
        if vain >= _SLICES + _GRACE and not self._is_watched:
            self._failed = f"{what} for {self._deadline:g} s"
        if self._failed:
            raise Silent(self._failed)


def _set_slice(connection: socket.socket, seconds: float) -> None:
    """Let a system call that waits return after so many seconds; bytes that came stay."""
    connection.settimeout(None)
    micro = max(int(1e6 * seconds), 1000)
    time = struct.pack("ll", *divmod(micro, 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, time)


def _unread(connection: socket.socket) -> int:
    """The bytes that came and were not read yet."""
    count: int = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]
    return count


def _records(data: Buffer) -> Iterator[memoryview]:
    view = memoryview(data).cast("B")
    for begin in range(0, view.nbytes, RECORD):
        yield view[begin : begin + RECORD]
