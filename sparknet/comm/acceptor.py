"""Acceptor: a port at which callers prove who they are, all of them in one thread.

Workers get in although strangers are silent, slow, many or talk nonsense.  A caller beyond the
limit replaces the oldest caller of the address that has the most of them: a worker's handshake
takes no time, so that a stranger who fills the port only replaces itself.  Running out of file
descriptors or threads for a moment delays callers by that moment and costs nothing else.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic

from sparknet.comm.handshake import PAUSE, SAID, TIME, Greeting, Keys, is_short
from sparknet.errors import CommError

STRANGERS = 64
"""Callers beyond those awaited that may be in their handshakes at once."""
_QUEUE = 1024
"""The length of the system's queue of callers that were not accepted yet."""
Expects = Callable[[bytes], bool]
"""Says whether a caller that knows the secret, by its `Caller.packed`, is expected."""
Admit = Callable[[socket.socket, bytes, Keys], None]
"""Takes a caller's connection; RuntimeError if no thread can be started for it now."""


class _Stranger:
    """A caller in its handshake."""

    def __init__(self, connection: socket.socket, address: str, secret: bytes) -> None:
        self.connection, self.address = connection, address
        self.greeting = Greeting(secret)
        self.said = b""
        self.until = monotonic() + TIME


class Acceptor:
    """Lets callers in until it is closed; at most ``limit`` are in their handshakes at once.

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
        self._listener, self._secret = listener, secret
        self._limit = _room(limit)
        self._expects, self._admit = expects, admit
        self._strangers: dict[socket.socket, _Stranger] = {}
        """Oldest first."""
        self._waiting: list[tuple[socket.socket, bytes, Keys]] = []
        """Callers that are let in as soon as the system has room for them."""
        self._resume: float | None = None
        """When the port is tried again."""
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
        """The seconds for which nobody could be let in, and the reason; 0 and "" if all is well."""
        short = self._short
        return (0.0, "") if short is None else (monotonic() - short[0], short[1])

    def close(self) -> None:
        """Close the port, and hang up on callers that are still in their handshakes."""
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
        """Return seconds until the next timeout."""
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
        """Make room for a caller: drop a stranger, or else pause the port for a moment."""
        if self._strangers:
            self._drop(self._most_crowded())
        else:
            self._lacks(reason)
            self._selector.unregister(self._listener)

    def _lacks(self, reason: str) -> None:
        self._short = (monotonic() if self._short is None else self._short[0], reason)
        self._resume = monotonic() + PAUSE

    def _most_crowded(self) -> _Stranger:
        """Return the oldest caller of the address that has the most of them."""
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
                raise CommError("a caller is not expected")
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
        """Try again what the system had no room for."""
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


def _room(limit: int) -> int:
    """At most a quarter of the descriptors that this process may have: the run needs the others."""
    import resource  # which Windows does not have

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if soft == resource.RLIM_INFINITY else min(limit, max(1, soft // 4))


def open_port(host: str, ports: Sequence[int]) -> socket.socket:
    """Return a socket that listens on the first free port of ``ports``."""
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
