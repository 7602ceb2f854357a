"""An attacker between the machines of a run: it sees, changes and opens what it likes.

It knows no secret.  Whoever opens a port of the run tells it, and gives the others the port that
the attacker answers with: the attacker's own, or the same.  The workers take themselves to be on
different machines, so that they share no memory.
"""

from __future__ import annotations

import json
import resource
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from sparknet.comm import wired_comm as wired
from sparknet.comm.handshake import MAGIC, NONCE, SAID
from sparknet.comm.rpc import Line, Link
from sparknet.training.driver.run import Run
from sparknet.training.workers import worker

CHALLENGE = len(MAGIC) + NONCE
SOON = 20.0
_PIECE = 1 << 16
_ANY = 1 << 20

Address = tuple[str, int]


@dataclass(frozen=True)
class TappedLink(Link):
    """A worker's link to its driver that tells the attacker which port the worker opens."""

    attacker: Address = ("", 0)
    files: int = 0
    """Descriptors that the worker's process may have, if not 0."""

    def dial(self, rank: int, *purpose: int) -> Line:
        listener, machine = worker._listener, wired.machine

        def alone() -> str:
            wired.machine = machine
            return ""

        def tapped(*given):
            # A process may work for other runs after this one.
            worker._listener, wired.machine = listener, alone
            found, host = listener(*given)
            if self.files:
                limit = (self.files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
                resource.setrlimit(resource.RLIMIT_NOFILE, limit)
            port = tell(self.attacker, f"worker {rank}", found.address[1])
            found.address = (found.address[0], port)
            return found, host

        worker._listener = tapped
        return super().dial(rank, *purpose)


def tap(link: Callable[..., Link], attacker: Address, files: int = 0) -> Callable[..., Link]:
    """`Run.link`, with the attacker on the way."""

    def tapped(run: Run, *host: str) -> Link:
        real = link(run, *host)
        driver = real.driver[0], tell(attacker, "driver", real.driver[1])
        fields = {**vars(replace(real, driver=driver)), "attacker": attacker, "files": files}
        return TappedLink(**fields)

    return tapped


def tell(attacker: Address, who: str, port: int) -> int:
    """Tell the attacker of a port; the port to give to the others."""
    with socket.create_connection(attacker, SOON) as connection:
        connection.sendall(json.dumps([who, port]).encode() + b"\n")
        return int(connection.makefile().readline())


class Attacker:
    """Does nothing, until it is told to."""

    def __init__(self) -> None:
        self._control = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._control.getsockname()
        self.ports: dict[str, int] = {}
        """Of those that have opened one, by name: the newest."""
        self._open: list[socket.socket] = [self._control]
        self._start(self._listen)

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def heard(self, who: str, port: int) -> int:
        """Somebody opened a port; the port that the others are told."""
        return port

    def dial(self, port: int) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port), SOON)
        self._open.append(connection)
        return connection

    def gains(self, connection: socket.socket) -> int:
        """How many bytes the other end says before it hangs up."""
        connection.settimeout(SOON)
        count = 0
        with suppress(ConnectionError):
            while piece := connection.recv(_PIECE):
                count += len(piece)
        return count

    def between(self, port: int, on_caller: Callable[[socket.socket], None]) -> int:
        """A port of its own in front of another; whoever calls there is its to serve."""
        server = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._open.append(server)
        self._start(self._serve, server, on_caller)
        return int(server.getsockname()[1])

    def relay(self, caller: socket.socket, port: int, change: Change) -> None:
        """Pass on all bytes between a caller and a port, as ``change`` gives them."""
        with suppress(OSError):
            listener = self.dial(port)
            threads = [
                self._start(_pump, listener, caller, lambda data: change(data, False)),
                self._start(_pump, caller, listener, lambda data: change(data, True)),
            ]
            for thread in threads:
                thread.join()

    def _serve(self, server: socket.socket, on_caller: Callable[[socket.socket], None]) -> None:
        with suppress(OSError):
            while True:
                caller, _ = server.accept()
                self._open.append(caller)
                self._start(on_caller, caller)

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._control.accept()
                with caller:
                    who, port = json.loads(caller.makefile().readline())
                    self.ports[who] = port
                    caller.sendall(b"%d\n" % self.heard(who, port))

    def _start(self, work, *given):
        thread = threading.Thread(target=work, args=given, daemon=True)
        thread.start()
        return thread


Change = Callable[[bytes, bool], bytes]
"""Of the next bytes of a connection, and whether they are the caller's."""


def as_they_are(data: bytes, of_caller: bool) -> bytes:
    return data


def _pump(source: socket.socket, into: socket.socket, change: Callable[[bytes], bytes]) -> None:
    with suppress(OSError):
        while data := source.recv(_ANY):
            into.sendall(change(data))
    with suppress(OSError):
        into.shutdown(socket.SHUT_WR)


class Flood(Attacker):
    """Silent connections to every port, before anybody else comes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.silent: list[socket.socket] = []
        super().__init__()

    def heard(self, who: str, port: int) -> int:
        self.silent += [self.dial(port) for _ in range(self.count)]
        return port


class Relay(Attacker):
    """Takes the first handshakes between workers to the driver's port."""

    def __init__(self, count: int = 2) -> None:
        self.left = count
        self.gained: list[int] = []
        super().__init__()

    def heard(self, who: str, port: int) -> int:
        return port if who == "driver" else self.between(port, lambda one: self._take(one, port))

    def _take(self, caller: socket.socket, port: int) -> None:
        if not self.left:
            self.relay(caller, port, as_they_are)
            return
        self.left -= 1
        driver = self.dial(self.ports["driver"])
        caller.sendall(driver.recv(CHALLENGE, socket.MSG_WAITALL))
        said = caller.recv(SAID, socket.MSG_WAITALL)
        assert len(said) == SAID
        driver.sendall(said)
        self.gained.append(self.gains(driver))
        caller.shutdown(socket.SHUT_RDWR)


class Replay(Attacker):
    """Overhears everything, and says each handshake again at once."""

    def __init__(self) -> None:
        self.overheard: list[tuple[int, bytearray]] = []
        """Of each connection, the port and what its caller said."""
        self.replayed: list[socket.socket] = []
        super().__init__()

    def heard(self, who: str, port: int) -> int:
        return self.between(port, lambda one: self._overhear(one, port))

    def again(self, port: int, said: bytes) -> None:
        connection = self.dial(port)
        with suppress(ConnectionError):
            connection.sendall(said)
        self.replayed.append(connection)

    def _overhear(self, caller: socket.socket, port: int) -> None:
        said = bytearray()
        self.overheard.append((port, said))

        def listen(data: bytes, of_caller: bool) -> bytes:
            if of_caller:
                said.extend(data)
                if len(said) == SAID:
                    self.again(port, bytes(said))
            return data

        self.relay(caller, port, listen)


class Meddler(Attacker):
    """Changes something large that one worker sends to another, once, when it is time."""

    def __init__(self, change: Callable[[bytes], bytes], size: int, who: str = "worker") -> None:
        self.now = threading.Event()
        self.done = False
        self._change, self._size, self._who = change, size, who
        super().__init__()

    def heard(self, who: str, port: int) -> int:
        if not who.startswith(self._who):
            return port
        return self.between(port, lambda one: self.relay(one, port, self._meddled))

    def _meddled(self, data: bytes, of_caller: bool) -> bytes:
        if of_caller and self.now.is_set() and not self.done and len(data) > self._size:
            self.done = True
            return self._change(data)
        return data


class Cut(Attacker):
    """Swallows what goes over chosen connections, from a moment on: no end hears of it.

    ``who`` opened the port behind which the connections are, in order: a worker's are those of the
    workers above it (for means, for requests up and down, for heartbeats), the driver's are its
    lines.
    """

    def __init__(self, who: str, connection: int, way: str = "both", only: int = 0) -> None:
        self.now = threading.Event()
        self.swallowed = 0
        self._who, self._connection, self._way = who, connection, way
        self._only = only
        """If not 0: only so many bytes are swallowed, once."""
        self._count = 0
        self._lock = threading.Lock()
        super().__init__()

    def heard(self, who: str, port: int) -> int:
        if who != self._who:
            return port
        return self.between(port, lambda one: self._take(one, port))

    def _take(self, caller: socket.socket, port: int) -> None:
        with self._lock:
            number, self._count = self._count, self._count + 1
        mine = number == self._connection
        self.relay(caller, port, self._swallow if mine else as_they_are)

    def _swallow(self, data: bytes, of_caller: bool) -> bytes:
        if not self.now.is_set() or self._way not in ("both", "up" if of_caller else "down"):
            return data
        if not self._only:
            self.swallowed += len(data)
            return b""
        if self.swallowed or len(data) <= self._only:
            return data
        self.swallowed = self._only
        return data[: -self._only]
