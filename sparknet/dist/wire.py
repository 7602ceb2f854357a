"""Pipe: bytes between two workers; Wire: a connection on which they travel as sealed records.

A piece is sent as records of `RECORD` bytes each, the last one shorter.  It is received as one
piece, or as several that begin and end at records.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress

from sparknet.dist.handshake import Keys
from sparknet.dist.seal import make_seal

RECORD = 1 << 21
"""The bytes of a record."""
_SMALL = 1 << 14
"""Records up to this size are copied next to their seal, and sent by one system call."""

Buffer = bytes | bytearray | memoryview


class Pipe(ABC):
    """Both directions between two workers.  One thread may send while another one receives."""

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


class Wire(Pipe):
    """A sealed connection."""

    def __init__(self, connection: socket.socket, keys: Keys, seal: str) -> None:
        self.connection = connection
        self._seal = make_seal(seal, keys)
        self._tag = memoryview(bytearray(self._seal.size))

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
            self.connection.sendall(sealed)
        elif len(record) <= _SMALL:
            self.connection.sendall(b"".join((record, sealed)))
        else:
            self.connection.sendall(record)
            if sealed:
                self.connection.sendall(sealed)

    def _fill(self, view: memoryview) -> None:
        got = 0
        while got < view.nbytes:
            count = self.connection.recv_into(view[got:], 0, socket.MSG_WAITALL)
            if not count:
                raise EOFError("it closed the connection")
            got += count


def _records(data: Buffer) -> Iterator[memoryview]:
    view = memoryview(data).cast("B")
    for begin in range(0, view.nbytes, RECORD):
        yield view[begin : begin + RECORD]
