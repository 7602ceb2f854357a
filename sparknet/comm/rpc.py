"""Remote calls between a run's workers and its driver: JSON and bytes over TCP."""

from __future__ import annotations

import json
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from sparknet.comm.acceptor import Acceptor, open_port
from sparknet.comm.handshake import DRIVER, PREFLIGHT, Caller, Keys, dial
from sparknet.comm.threads import start
from sparknet.comm.wire import HMAC, RECORD, Wire
from sparknet.errors import CommError

Address = tuple[str, int]

_HEADER = struct.Struct("!IQ")
"""The length of the JSON object, and of the bytes after it."""
_BUSY = {"busy": True}
"""What the driver says while it is at a call."""
_LONGEST_OBJECT = 1 << 20
_WORKERS = 1 << 16
"""More workers than any run has."""


class Refused(CommError):
    """The driver could not do what it was asked for; it is there."""


class Line:
    """A connection, after its handshake.

    Each end takes the other for lost when it hears nothing for the deadline: a worker calls several
    times within it, and the driver says that it is still at a call that takes longer.
    """

    def __init__(self, wire: Wire, rank: int, purpose: int) -> None:
        self._wire = wire
        self.rank, self.purpose = rank, purpose
        """The worker's rank and the line's purpose, as the handshake proved them."""
        wire.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._lock = threading.Lock()
        self._ahead = 0
        self.is_serving = False
        """Whether a call is being answered at this end."""

    @property
    def host(self) -> str:
        """The address of this end, as the network between both ends has it."""
        return str(self._wire.connection.getsockname()[0])

    def call(
        self, what: str, parts: Sequence[memoryview] = (), **arguments: Any
    ) -> tuple[dict[str, Any], bytearray]:
        """Call the other end; returns its answer.  Any thread may call."""
        with self._lock:
            try:
                self._send_object({"call": what, **arguments}, sum(part.nbytes for part in parts))
                for piece in _in_records(parts):
                    self._wire.send(piece)
                answer = self._answer(what)
                payload = bytearray(self._ahead)
                self.receive_into(memoryview(payload))
            except (OSError, EOFError) as error:
                raise CommError(f"the driver is gone (call '{what}'): {error}") from error
        if "error" in answer:
            raise Refused(f"the driver refused '{what}': {answer['error']}")
        return answer, payload

    def ask(self, what: str) -> bool:
        """Call, and return the yes or no in the answer, which has the call's name."""
        return bool(self.call(what)[0][what])

    def tell(self, event: dict[str, Any]) -> None:
        """Call with an event, which has no answer."""
        self.call("event", event=event)

    def _answer(self, what: str) -> dict[str, Any]:
        while (answer := self.receive()) == _BUSY:
            pass
        if answer is None:
            raise CommError(f"the driver hung up while it was asked for '{what}'")
        return answer

    def send(self, message: dict[str, Any], payload: Any = b"") -> None:
        """Answer a call."""
        view = memoryview(payload).cast("B")
        with self._lock:
            self._send_object(message, view.nbytes)
            self._wire.send(view)

    def reassure(self) -> None:
        """Say that a call is still being answered, unless the answer is under way."""
        if self.is_serving and self._lock.acquire(blocking=False):
            try:
                if self.is_serving and self._has_room():
                    self._send_object(_BUSY, 0)
            finally:
                self._lock.release()

    def _has_room(self) -> bool:
        """Return whether a short message can be sent at once."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wire.connection, selectors.EVENT_WRITE)
            return bool(selector.select(0))

    def receive(self) -> dict[str, Any] | None:
        """Return the next object, or None if the other end hung up."""
        header = memoryview(bytearray(_HEADER.size))
        try:
            self._wire.receive(header)
        except EOFError:
            return None
        length, self._ahead = _HEADER.unpack(header)
        if length > _LONGEST_OBJECT:
            raise CommError(f"a message of {length} bytes is refused")
        text = bytearray(length)
        self._wire.receive(memoryview(text))
        message = json.loads(text)
        if not isinstance(message, dict):
            raise CommError("a message that is no object is refused")
        return message

    def receive_into(self, view: memoryview) -> None:
        """Fill ``view`` with the bytes after the last object; CommError if their number differs."""
        if self._ahead != view.nbytes:
            raise CommError(f"{self._ahead} bytes came where {view.nbytes} were expected")
        self._ahead = 0
        self._wire.receive(view)

    def chunks(self, size: int) -> Iterator[memoryview]:
        """Yield the bytes after the last object, piece by piece."""
        if self._ahead != size:
            raise CommError(f"{self._ahead} bytes came where {size} were expected")
        chunk = memoryview(bytearray(min(size, RECORD)))
        while self._ahead:
            piece = chunk[: min(self._ahead, RECORD)]
            self._wire.receive(piece)
            self._ahead -= piece.nbytes
            yield piece

    def end(self) -> None:
        """Shut the connection down, which wakes all that wait for it."""
        self._wire.end()

    def close(self) -> None:
        self._wire.end()
        self._wire.close()

    def _send_object(self, message: dict[str, Any], more: int) -> None:
        text = json.dumps(message).encode()
        self._wire.send(_HEADER.pack(len(text), more))
        self._wire.send(text)


@dataclass(frozen=True)
class Link:
    """What a worker needs to open a line to its run's driver."""

    run: str
    driver: Address
    secret: bytes
    seal: str
    """The seal of all connections of the run: `sparknet.comm.wire`."""
    deadline: float = 60.0
    """Seconds after which a silent end of a line is lost."""

    def dial(self, rank: int, purpose: int = DRIVER) -> Line:
        """Connect.  A line for PREFLIGHT uses the seal that every installation has."""
        try:
            connection, keys = dial(self.driver, self.secret, Caller(purpose, self.run, rank))
        except CommError:
            raise
        except OSError as error:
            host, port = self.driver
            raise CommError(f"the driver at {host}:{port} cannot be reached: {error}") from error
        seal = self.seal if purpose == DRIVER else HMAC
        return Line(Wire(connection, keys, seal, self.deadline, is_watched=False), rank, purpose)


def _in_records(parts: Sequence[memoryview]) -> Iterator[memoryview]:
    """Yield the records of several buffers, as if they were one buffer."""
    pieces = [part.cast("B") for part in parts if part.nbytes]
    if len(pieces) == 1:
        yield pieces[0]
        return
    record = bytearray()
    for piece in pieces:
        begin = 0
        while begin < piece.nbytes:
            part = piece[begin : begin + RECORD - len(record)]
            begin += part.nbytes
            record += part
            if len(record) == RECORD:
                yield memoryview(record)
                record = bytearray()
    if record:
        yield memoryview(record)


class Gate:
    """A port, and a thread for each line that is opened through it.

    A line of DRIVER that is silent for the deadline raises Silent in ``serve``.
    """

    def __init__(self, link: Link, serve: Callable[[Line], None]) -> None:
        """``link`` is that of the run, with the address to listen on."""
        self._link, self._serve = link, serve
        self._open: set[Line] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        listener = open_port(link.driver[0], (0,))
        self.port: int = listener.getsockname()[1]
        self._acceptor = Acceptor(listener, link.secret, self._expects, self._admit)
        self._over = threading.Event()
        self._pulse = threading.Thread(target=self._reassure, name="sparknet-pulse", daemon=True)
        start(self._pulse)

    @property
    def trouble(self) -> tuple[float, str]:
        """The seconds for which no line could be opened, and why; 0 and "" if all is well."""
        return self._acceptor.trouble

    def close(self) -> None:
        """Close the port and all lines; their threads end."""
        self._acceptor.close()
        with self._lock:
            self._closed = True
            for line in self._open:
                line.end()
        self._over.set()
        for thread in [*self._threads, self._pulse]:
            thread.join()

    def _reassure(self) -> None:
        """Let workers know of calls that take long."""
        while not self._over.wait(self._link.deadline / 4):
            with self._lock:
                lines = list(self._open)
            for line in lines:
                with suppress(OSError, ValueError):  # it was closed meanwhile
                    line.reassure()

    def _expects(self, who: bytes) -> bool:
        return self._caller(who) is not None

    def _caller(self, who: bytes) -> Caller | None:
        caller = Caller.unpacked(who, self._link.run)
        of_ours = caller.purpose in (DRIVER, PREFLIGHT) and caller.rank < _WORKERS
        return caller if of_ours and caller.packed() == who else None

    def _admit(self, connection: socket.socket, who: bytes, keys: Keys) -> None:
        caller = self._caller(who)
        assert caller is not None
        training = caller.purpose == DRIVER
        seal = self._link.seal if training else HMAC
        wire = Wire(connection, keys, seal, self._link.deadline, is_watched=not training)
        line = Line(wire, caller.rank, caller.purpose)
        name = f"sparknet-line-{line.rank}"
        thread = threading.Thread(target=self._handle, args=(line,), name=name, daemon=True)
        thread.start()
        with self._lock:
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]

    def _handle(self, line: Line) -> None:
        """Serve a line, and hang up on a caller that talks nonsense."""
        with closing(line):
            with self._lock:
                if self._closed:
                    return
                self._open.add(line)
            try:
                self._serve(line)
            except (OSError, EOFError, ValueError, KeyError, TypeError):
                pass
            finally:
                with self._lock:
                    self._open.discard(line)
