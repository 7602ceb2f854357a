"""Strangers at a run's port: whatever they do, the workers meet, and nobody else gets in."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain

import pytest

from sparknet.comm.handshake import DRIVER, MESH, Caller, call
from sparknet.comm.mesh import Address, Listener
from sparknet.comm.tcp_comm import TcpComm
from sparknet.errors import CommError
from sparknet.native import NDArray
from tests.comm.groups import SECRET, in_threads, together

SOON = 20.0


def dialled(address: Address) -> socket.socket:
    connection = socket.create_connection(address, SOON)
    connection.settimeout(SOON)
    return connection


def say(*pieces: bytes) -> Callable[[Address], list[socket.socket]]:
    def act(address: Address) -> list[socket.socket]:
        connection = dialled(address)
        for piece in pieces:
            connection.sendall(piece)
        return [connection]

    return act


def many(address: Address) -> list[socket.socket]:
    """More than are looked at together."""
    return [dialled(address) for _ in range(150)]


def hang_up(address: Address) -> list[socket.socket]:
    dialled(address).close()
    return []


def claim(secret, who):
    """A caller that says it is so and so; it is turned away."""

    def act(address: Address) -> list[socket.socket]:
        connection = dialled(address)
        with suppress(CommError, OSError):
            call(connection, secret, who, SOON)
        return [connection]

    return act


STRANGERS: dict[str, Callable[[Address], list[socket.socket]]] = {
    "silent": say(),
    "garbage": say(bytes(range(256)) * 64),
    "a huge length": say(b"\xff" * 96),
    "a web browser": say(b"GET / HTTP/1.1\r\nHost: there\r\n\r\n"),
    "half a handshake": say(b"x" * 40),
    "many": many,
    "gone at once": hang_up,
    "wrong secret": claim(b"another secret", Caller(MESH, "", 1, 0, 0)),
    "right secret, another run": claim(SECRET, Caller(MESH, "another run", 1, 0, 0)),
    "right secret, a rank too many": claim(SECRET, Caller(MESH, "", 2, 0, 0)),
    "right secret, no such channel": claim(SECRET, Caller(MESH, "", 1, 0, 99)),
    "right secret, another listener": claim(SECRET, Caller(MESH, "", 1, 1, 0)),
    "right secret, another purpose": claim(SECRET, Caller(DRIVER, "", 1, 0, 0)),
}


@contextmanager
def meeting_at(listeners: list[Listener]) -> Iterator[Callable[[], list[TcpComm]]]:
    """Rank 0 waits already; rank 1 comes when it is called."""
    addresses = [listener.address for listener in listeners]
    found = []
    early = threading.Thread(
        target=lambda: found.extend(
            in_threads([lambda: TcpComm.connect(listeners[0], 0, addresses, SECRET, SOON)])
        )
    )
    early.start()

    def rest() -> list[TcpComm]:
        late = TcpComm.connect(listeners[1], 1, addresses, SECRET, SOON)
        early.join()
        return [*found, late]

    yield rest


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_at_the_rendezvous_change_nothing(kind):
    listeners = [Listener(), Listener()]
    port = listeners[0].address
    with ExitStack() as cleanup, meeting_at(listeners) as rest:
        strangers = [STRANGERS[kind](port) for _ in range(2)]
        comms = rest()
        for comm in comms:
            cleanup.callback(comm.close)
        assert together(comms, lambda comm: comm.gather(comm.rank)) == [[0, 1], [0, 1]]
        for connection in chain(*strangers):
            with connection, suppress(ConnectionError):  # turned away, and not kept waiting
                while connection.recv(1 << 16):
                    pass


def test_nobody_reaches_the_port_once_all_have_met():
    listeners = [Listener(), Listener()]
    with meeting_at(listeners) as rest:
        comms = rest()
    try:
        for listener in listeners:
            with pytest.raises(ConnectionRefusedError):
                dialled(listener.address)
        buffers = [NDArray.full((5,), 1.0), NDArray.full((5,), 2.0)]
        together(comms, lambda comm: comm.mean(buffers[comm.rank]))
        assert all(buffer.equals([1.5] * 5) for buffer in buffers)
    finally:
        for comm in comms:
            comm.close()


def test_who_does_not_come_is_named():
    listener, absent = Listener(), Listener()
    addresses = [listener.address, absent.address]
    with pytest.raises(CommError, match=rf"worker 1 at 127.0.0.1:{absent.address[1]} did not come"):
        TcpComm.connect(listener, 0, addresses, SECRET, 0.2)
    absent.close()


def test_who_cannot_be_reached_is_named():
    gone, listener = Listener(), Listener()
    gone.close()
    addresses = [gone.address, listener.address]
    with pytest.raises(CommError, match=rf"worker 0 at 127.0.0.1:{gone.address[1]} cannot be"):
        TcpComm.connect(listener, 1, addresses, SECRET, SOON)


def test_workers_of_two_secrets_do_not_meet():
    listeners = [Listener(), Listener()]
    addresses = [listener.address for listener in listeners]
    actual = in_threads(
        [
            lambda: TcpComm.connect(listeners[0], 0, addresses, b"one", 0.5),
            lambda: TcpComm.connect(listeners[1], 1, addresses, b"two", 0.5),
        ]
    )
    assert "worker 1 at" in str(actual[0])
    assert "does not take this worker for one of its run" in str(actual[1])


def test_a_range_of_ports_is_tried_in_order():
    taken = Listener()
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    port = taken.address[1]
    one = Listener(ports=(port, free))
    assert one.address == ("127.0.0.1", free)
    with pytest.raises(CommError, match=rf"no port of \[{port}, {free}\] can be opened"):
        Listener(ports=(port, free))
    one.close()
    taken.close()
