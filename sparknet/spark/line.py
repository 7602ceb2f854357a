"""Lines between a run's workers and its driver: calls of JSON and bytes, over TCP."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

from sparknet.dist.auth import answer, ask
from sparknet.errors import CommError

_HEADER = struct.Struct("!IQ")
"""Length of the JSON object, length of the bytes behind it."""
_LONGEST_OBJECT = 1 << 20
_CHUNK = 1 << 20
_HANDSHAKE = 10.0
"""Seconds that a stranger may take to show that it knows the secret."""
_STRANGERS = 64
"""How many may try at a time."""
_PAUSE = 0.1
"""Seconds until a port that could not take a caller tries again."""


class Line:
    """One connection, after both ends have shown that they know the secret."""

    def __init__(self, connection: socket.socket, secret: bytes, server: bool) -> None:
        self._socket = connection
        if server:
            ask(connection, secret, _HANDSHAKE)
        else:
            answer(connection, secret, b"worker", _HANDSHAKE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._lock = threading.Lock()
        self._ahead = 0

    @classmethod
    def to(cls, host: str, port: int, secret: bytes) -> Line:
        """Connect to the driver."""
        try:
            connection = socket.create_connection((host, port), _HANDSHAKE)
        except OSError as error:
            raise CommError(f"the driver at {host}:{port} cannot be reached: {error}") from error
        try:
            return cls(connection, secret, server=False)
        except BaseException:
            connection.close()
            raise

    def call(
        self, what: str, parts: Sequence[memoryview] = (), **arguments: Any
    ) -> tuple[dict[str, Any], bytearray]:
        """Ask the other end; what it answers.  Any thread."""
        with self._lock:
            try:
                self._send_object({"call": what, **arguments}, sum(part.nbytes for part in parts))
                for part in parts:
                    self._socket.sendall(part)
                said = self.receive()
                if said is None:
                    raise CommError(f"the driver hung up while it was asked for '{what}'")
                payload = bytearray(self._ahead)
                self.receive_into(memoryview(payload))
            except OSError as error:
                raise CommError(f"the driver is gone (call '{what}'): {error}") from error
        if "error" in said:
            raise CommError(f"the driver refused '{what}': {said['error']}")
        return said, payload

    def send(self, message: dict[str, Any], payload: Any = b"") -> None:
        """Answer a call."""
        view = memoryview(payload).cast("B")
        self._send_object(message, view.nbytes)
        self._socket.sendall(view)

    def receive(self) -> dict[str, Any] | None:
        """The next object, or None when the other end has hung up."""
        header = bytearray(_HEADER.size)
        if not self._fill(memoryview(header), may_end=True):
            return None
        length, self._ahead = _HEADER.unpack(header)
        if length > _LONGEST_OBJECT:
            raise CommError(f"a message of {length} bytes is refused")
        text = bytearray(length)
        self._fill(memoryview(text))
        message = json.loads(text)
        if not isinstance(message, dict):
            raise CommError("a message that is no object is refused")
        return message

    def receive_into(self, view: memoryview) -> None:
        """The bytes behind the last object: as many as are expected, or none are taken."""
        if self._ahead != view.nbytes:
            raise CommError(f"{self._ahead} bytes came where {view.nbytes} were expected")
        self._ahead = 0
        self._fill(view)

    def chunks(self, size: int) -> Iterator[memoryview]:
        """The bytes behind the last object, piece by piece."""
        if self._ahead != size:
            raise CommError(f"{self._ahead} bytes came where {size} were expected")
        chunk = memoryview(bytearray(min(size, _CHUNK)))
        while self._ahead:
            piece = chunk[: min(self._ahead, _CHUNK)]
            self._fill(piece)
            self._ahead -= piece.nbytes
            yield piece

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _send_object(self, message: dict[str, Any], more: int) -> None:
        text = json.dumps(message).encode()
        self._socket.sendall(_HEADER.pack(len(text), more) + text)

    def _fill(self, view: memoryview, may_end: bool = False) -> bool:
        got = 0
        while got < view.nbytes:
            count = self._socket.recv_into(view[got:])
            if not count:
                if may_end and not got:
                    return False
                raise CommError("a connection ended in the middle of a message")
            got += count
        return True


class Gate:
    """A port, and a thread for each line that comes in through it."""

    def __init__(self, secret: bytes, serve: Callable[[Line], None], host: str = "") -> None:
        self._secret, self._serve = secret, serve
        self._listener = socket.create_server((host, 0), backlog=_STRANGERS)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._strangers = threading.Semaphore(_STRANGERS)
        self._closing = threading.Event()
        self._accepting = threading.Thread(target=self._accept, name="sparknet-gate", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Close the port and all lines; their threads end."""
        self._closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed; or the caller has gone, or too many files are open
                if self._closing.wait(_PAUSE):
                    return
                continue
            if not self._strangers.acquire(blocking=False):
                connection.close()
                continue
            thread = threading.Thread(target=self._handle, args=(connection,), daemon=True)
            with self._lock:
                self._open.add(connection)
                self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            thread.start()

    def _handle(self, connection: socket.socket) -> None:
        """A stranger that does not know the secret, or talks nonsense, is hung up on."""
        with closing(connection):
            try:
                try:
                    line = Line(connection, self._secret, server=True)
                finally:
                    self._strangers.release()
                self._serve(line)
            except (OSError, ValueError, KeyError, TypeError):
                pass
            finally:
                with self._lock:
                    self._open.discard(connection)
