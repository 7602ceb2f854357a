"""Acceptor: a port at which callers prove who they are, all of them in one thread.

Strangers can be silent, slow, many or talk nonsense; workers are let in meanwhile.  One caller too many
drives out the oldest one of the address that has most of them: a worker takes no time, and a
stranger that fills the port drives out itself.  Running out of file descriptors or threads for a
moment costs nothing but that moment.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic

from sparknet.dist.handshake import PAUSE, SAID, TIME, Greeting, Keys, is_short
from sparknet.errors import CommError

STRANGERS = 64
"""Callers beyond those awaited that may be in their handshakes at once."""
_QUEUE = 1024
"""Callers that the system holds until they are looked at."""
Expects = Callable[[bytes], bool]
"""Whether a caller that knows the secret, and says so (`Caller.packed`), is awaited."""
Admit = Callable[[socket.socket, bytes, Keys], None]
"""Takes a caller's connection; RuntimeError if no thread can be started for it at the moment."""


class _Stranger:
    """A caller in its handshake."""

    def __init__(self, connection: socket.socket, address: str, secret: bytes) -> None:
        self.connection, self.address = connection, address
        self.greeting = Greeting(secret)
        self.said = b""
        self.until = monotonic() + TIME


class Acceptor:
    """Lets callers in until it is closed.  ``limit`` is how many may be in their handshakes.

    ``expects`` and ``admit`` are called in the acceptor's thread.
    """

    def __init__(
        self,
        listener: socket.socket,
        secret: bytes,
        expects: Expects,
        admit: Admit,
        limit: int = STRANGERS,
    ) -> None:
        self._listener, self._secret, self._limit = listener, secret, limit
        self._expects, self._admit = expects, admit
        self._strangers: dict[socket.socket, _Stranger] = {}
        """The oldest first."""
        self._waiting: list[tuple[socket.socket, bytes, Keys]] = []
        """Those that are let in as soon as there is room for them."""
        self._resume: float | None = None
        """When the port is looked at again."""
        self._short: tuple[float, str] | None = None
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="sparknet-acceptor", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> tuple[float, str]:
        """For how many seconds nobody could be let in, and why; 0 where all is well."""
        short = self._short
        return (0.0, "") if short is None else (monotonic() - short[0], short[1])

    def close(self) -> None:
        """Close the port; who is still in its handshake is hung up on."""
        self._wake.close()
        self._thread.join()
        close_listener(self._listener)

    def _run(self) -> None:
        with self._selector, self._woken:
            while True:
                for key, _ in self._selector.select(self._wait()):
                    if key.fileobj is self._woken:
                        self._dismiss()
                        return
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj in self._strangers:
                        self._hear(self._strangers[key.fileobj])
                self._expire()

    def _wait(self) -> float | None:
        """Seconds until something has to be done that nobody asks for."""
        times = [stranger.until for stranger in self._strangers.values()]
        if self._resume is not None:
            times.append(self._resume)
        return max(0.0, min(times) - monotonic()) if times else None

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError as error:
            if is_short(error):
                self._make_room(error.strerror or str(error))
            return
        self._short = None
        while len(self._strangers) >= self._limit:
            self._drop(self._most_crowded())
        stranger = _Stranger(connection, str(address[0]), self._secret)
        connection.setblocking(False)
        self._strangers[connection] = stranger
        self._selector.register(connection, selectors.EVENT_READ)
        try:
            connection.send(stranger.greeting.challenge)
        except OSError:
            self._drop(stranger)

    def _make_room(self, reason: str) -> None:
        """The system has none for a caller: a stranger leaves, or the port rests for a moment."""
        if self._strangers:
            self._drop(self._most_crowded())
        else:
            self._lacks(reason)
            self._selector.unregister(self._listener)

    def _lacks(self, reason: str) -> None:
        self._short = (monotonic() if self._short is None else self._short[0], reason)
        self._resume = monotonic() + PAUSE

    def _most_crowded(self) -> _Stranger:
        """The oldest of the address that has most."""
        counts = Counter(stranger.address for stranger in self._strangers.values())
        return max(self._strangers.values(), key=lambda stranger: counts[stranger.address])

    def _hear(self, stranger: _Stranger) -> None:
        try:
            piece = stranger.connection.recv(SAID - len(stranger.said))
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        stranger.said += piece
        if not piece:
            self._drop(stranger)
        elif len(stranger.said) == SAID:
            self._let_in(stranger)

    def _let_in(self, stranger: _Stranger) -> None:
        connection = stranger.connection
        self._forget(stranger)
        try:
            who, proof, keys = stranger.greeting.check(stranger.said)
            if not self._expects(who):
                raise CommError("a caller is not awaited")
            connection.settimeout(TIME)
            connection.sendall(proof)  # a few bytes, into an empty buffer
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # a CommError is one too
            connection.close()
        else:
            self._take(connection, who, keys)

    def _take(self, connection: socket.socket, who: bytes, keys: Keys) -> None:
        try:
            self._admit(connection, who, keys)
        except RuntimeError as error:
            self._lacks(str(error))
            self._waiting.append((connection, who, keys))

    def _expire(self) -> None:
        now = monotonic()
        for stranger in list(self._strangers.values()):
            if stranger.until <= now:
                self._drop(stranger)
        if self._resume is not None and self._resume <= now:
            self._look_again()

    def _look_again(self) -> None:
        """After a moment without room."""
        self._resume = None
        if self._listener not in self._selector.get_map():
            self._selector.register(self._listener, selectors.EVENT_READ)
        waiting, self._waiting = self._waiting, []
        for caller in waiting:
            self._take(*caller)
        if waiting and not self._waiting:
            self._short = None

    def _forget(self, stranger: _Stranger) -> None:
        del self._strangers[stranger.connection]
        self._selector.unregister(stranger.connection)

    def _drop(self, stranger: _Stranger) -> None:
        self._forget(stranger)
        stranger.connection.close()

    def _dismiss(self) -> None:
        for stranger in list(self._strangers.values()):
            self._drop(stranger)
        for connection, _, _ in self._waiting:
            connection.close()


def open_port(host: str, ports: Sequence[int]) -> socket.socket:
    """Listening on the first of the ports that is free."""
    failure: OSError | None = None
    for port in ports:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family, backlog=_QUEUE)
        except OSError as error:
            failure = error
    raise CommError(f"no port of {list(ports)} can be opened on '{host}': {failure}")


def close_listener(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
