"""Mesh: direct connections between all workers of a run, made in one rendezvous.

Each worker binds a port (`Listener`) and tells the others its address by the line to the driver.
`connect` makes four connections for each pair: one for collective operations, one for each side's
requests, one for heartbeats; or those that both sides want.  Then the port is closed, so that no
stranger can reach a run that is under way.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sparknet.comm.acceptor import STRANGERS, Acceptor, close_listener, open_port
from sparknet.comm.handshake import MESH, Caller, Keys, dial
from sparknet.comm.wire import HMAC, Wire
from sparknet.errors import CommError

Address = tuple[str, int]

TOGETHER, UPWARD, DOWNWARD, HEARTBEATS = range(4)
"""Channels: UPWARD carries the requests of the lower rank, DOWNWARD those of the higher."""
CHANNELS = (TOGETHER, UPWARD, DOWNWARD, HEARTBEATS)
Wanted = Mapping[int, Sequence[int]]
"""The channels that are wanted to each of the other workers."""


class Listener:
    """A bound port that waits for the other workers."""

    def __init__(self, host: str = "127.0.0.1", ports: Sequence[int] = (0,)) -> None:
        self._asked = host, ports
        self._socket = open_port(host, ports)
        name = self._socket.getsockname()
        self.address: Address = (name[0], name[1])
        self._meeting: _Arrivals | None = None

    def again(self) -> Listener:
        """Another port of the same kind."""
        return Listener(*self._asked)

    def close(self) -> None:
        close_listener(self._socket)

    def give_up(self, error: CommError) -> None:
        """Let `connect` wait no longer: a worker is lost."""
        if self._meeting is not None:
            self._meeting.give_up(error)

    def connect(
        self,
        rank: int,
        addresses: Sequence[Address],
        secret: bytes,
        deadline: float,
        run: str = "",
        seal: str = HMAC,
        wanted: Wanted | None = None,
        is_watched: bool = True,
    ) -> list[list[Wire]]:
        """Connect to all workers; returns each one's connections by channel, none for this worker.

        With ``wanted`` only to those that it names, by its channels; they want the same of this
        worker.  The port is closed afterwards in every case.
        """
        everybody = {one: CHANNELS for one in range(len(addresses)) if one != rank}
        callers = everybody if wanted is None else wanted
        wire = partial(Wire, seal=seal, deadline=deadline, is_watched=is_watched)
        self._meeting = meeting = _Arrivals(rank, len(addresses), run, wire, callers)
        limit = STRANGERS + sum(map(len, callers.values()))
        acceptor = Acceptor(self._socket, secret, meeting.expects, meeting.admit, limit)
        try:
            until = time.monotonic() + deadline
            for other in sorted(one for one in callers if one < rank):
                meeting.call(other, addresses[other], secret, until)
            meeting.wait(until, deadline, addresses, acceptor)
        except BaseException:
            meeting.abandon()
            raise
        finally:
            acceptor.close()
        return meeting.wires()


class _Arrivals:
    """The connections made so far, and the callers still expected."""

    def __init__(
        self, rank: int, size: int, run: str, wire: Callable[..., Wire], wanted: Wanted
    ) -> None:
        self._rank, self._size, self._run = rank, size, run
        self._wire, self._wanted = wire, wanted
        self._awaited = {
            Caller(MESH, run, other, rank, channel).packed(): (other, channel)
            for other, channels in wanted.items()
            for channel in channels
            if other > rank
        }
        self._table: dict[tuple[int, int], Wire] = {}
        self._changed = threading.Condition()
        self._over = False
        self._error: CommError | None = None

    def give_up(self, error: CommError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def call(self, other: int, address: Address, secret: bytes, until: float) -> None:
        for channel in self._wanted[other]:
            who = Caller(MESH, self._run, self._rank, other, channel)
            try:
                connection, keys = dial(address, secret, who, until - time.monotonic())
            except CommError as error:
                raise CommError(f"worker {other} at {_text(address)}: {error}") from error
            except OSError as error:
                raise CommError(
                    f"worker {other} at {_text(address)} cannot be reached: {error}"
                ) from error
            self._table[other, channel] = self._wire(connection, keys)

    def expects(self, who: bytes) -> bool:
        with self._changed:
            return who in self._awaited and not self._over

    def admit(self, connection: socket.socket, who: bytes, keys: Keys) -> None:
        wire = self._wire(connection, keys)
        with self._changed:
            if self._over:
                wire.close()
                return
            self._table[self._awaited.pop(who)] = wire
            self._changed.notify_all()

    def wait(
        self, until: float, deadline: float, addresses: Sequence[Address], acceptor: Acceptor
    ) -> None:
        expected = sum(map(len, self._wanted.values()))
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._table) == expected or self._error is not None,
                max(until - time.monotonic(), 0),
            )
            self._over = True
            if len(self._table) != expected and self._error is not None:
                raise self._error
            missing = sorted(rank for rank, _ in self._awaited.values())
        if missing:
            raise CommError(
                f"worker {missing[0]} at {_text(addresses[missing[0]])} did not come "
                f"within {deadline:g} s{_because(acceptor)}"
            )

    def abandon(self) -> None:
        with self._changed:
            self._over = True
            for wire in self._table.values():
                wire.close()

    def wires(self) -> list[list[Wire]]:
        return [
            [self._table[rank, channel] for channel in self._wanted.get(rank, ())]
            for rank in range(self._size)
        ]


def _because(acceptor: Acceptor) -> str:
    seconds, reason = acceptor.trouble
    return (
        f": this worker could take no connection for {seconds:.0f} s ({reason})" if reason else ""
    )


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
