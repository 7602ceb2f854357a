"""Workers of one machine share memory; nothing else changes, and a stranger's file is refused."""

import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.comm import shared_memory
from sparknet.comm import tcp_comm as tcp
from sparknet.comm import wired_comm as wired
from sparknet.comm.shared_memory import (
    CAPACITY,
    CHANNELS,
    SWITCH,
    Offer,
    SharedPipe,
    machine,
    make_offer,
    neighbours,
    open_offer,
)
from sparknet.errors import ArrayError
from sparknet.native import NDArray
from sparknet.native.ring import Ring, ring_bytes
from tests.comm.groups import connected, group, in_threads, together

linux = pytest.mark.skipif(not machine(), reason="needs memfd and /proc")
pytestmark = linux


@contextmanager
def both_ends(workers: int = 1) -> Iterator[tuple[list[SharedPipe], list[SharedPipe]]]:
    """The pipes of the maker, and of the last of the others."""
    offer = Offer(workers)
    opened = open_offer(offer.told, workers)
    offer.close()
    assert opened is not None
    yield offer.file.pipes(workers - 1, made=True), opened.pipes(workers - 1, made=False)


def received(pipe: SharedPipe, size: int) -> bytes:
    into = bytearray(size)
    pipe.receive(memoryview(into))
    return bytes(into)


@pytest.mark.parametrize("size", [0, 1, 100, CAPACITY - 1, CAPACITY, 3 * CAPACITY + 5])
def test_what_is_sent_arrives_both_ways_on_every_channel(size):
    with both_ends(3) as (maker, other):
        assert len(maker) == len(other) == CHANNELS
        for one, two in zip(maker, other, strict=True):
            here, there = os.urandom(size), os.urandom(size)
            actual = in_threads(
                [
                    lambda one=one, here=here: one.send(here),
                    lambda one=one: received(one, size),
                    lambda two=two, there=there: two.send(there),
                    lambda two=two: received(two, size),
                ]
            )
            assert actual == [None, there, None, here]


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 70), min_size=1, max_size=30),
    st.lists(st.integers(1, 70), min_size=1, max_size=30),
    st.integers(1, 40),
)
def test_any_pieces_through_any_ring(wrote, read, capacity):
    memory = NDArray.zeros((ring_bytes(capacity),), "uint8")
    data = os.urandom(sum(wrote))
    writer, reader = (Ring(memory, 0, capacity) for _ in range(2))

    def write():
        at = 0
        for size in wrote:
            writer.write(data[at : at + size])
            at += size

    def fill() -> bytes:
        found, turn = b"", 0
        while len(found) < len(data):
            into = bytearray(min(read[turn % len(read)], len(data) - len(found)))
            reader.read_into(memoryview(into))
            found, turn = found + bytes(into), turn + 1
        return found

    assert in_threads([write, fill]) == [None, data]


def test_an_end_is_seen_after_what_was_sent():
    with both_ends() as (maker, other):
        maker[0].send(b"12345")
        maker[0].end(socket.SHUT_WR)
        assert received(other[0], 5) == b"12345"
        with pytest.raises(EOFError):
            received(other[0], 1)
        other[0].send(b"back")
        assert received(maker[0], 4) == b"back"
        maker[0].close()
        with pytest.raises(BrokenPipeError):
            other[0].send(b"too late")


@pytest.mark.parametrize("work", ["send", "receive"])
def test_an_end_wakes_whoever_waits(work):
    with both_ends() as (maker, other):
        waiting = threading.Event()

        def wait():
            waiting.set()
            if work == "send":
                maker[0].send(bytes(2 * CAPACITY))
            else:
                received(maker[0], 1)

        def end():
            waiting.wait()
            other[0].end()

        found, _ = in_threads([wait, end])
        assert isinstance(found, BrokenPipeError if work == "send" else EOFError)


def test_a_ring_outside_the_memory_is_refused():
    memory = NDArray.zeros((ring_bytes(100),), "uint8")
    for begin in (-64, 64):
        with pytest.raises(ArrayError, match=f"no room for a ring at {begin}"):
            Ring(memory, begin, 100)


def test_positions_that_cannot_be():
    """Of the other side's half of the header, after which nothing is copied."""
    memory = NDArray.zeros((ring_bytes(100),), "uint8")
    ring = Ring(memory, 0, 100)
    memory.numpy()[:8] = 255
    with pytest.raises(OSError, match="damaged the memory"):
        ring.read_into(memoryview(bytearray(5)))
    memory.numpy()[64] = 1
    with pytest.raises(OSError, match="damaged the memory"):
        ring.write(bytes(5))


def anonymous(bytes_of_it: int, seals: bool, name: str = "sparknet") -> int:
    number = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(number, bytes_of_it)
    if seals:
        import fcntl

        fcntl.fcntl(number, fcntl.F_ADD_SEALS, shared_memory._seals())
    return number


def test_a_file_that_is_not_the_one_is_refused():
    length, nonce = shared_memory._length(1), bytes(32).hex()
    with tempfile.TemporaryFile() as file:
        file.truncate(length)
        numbers = {
            "a file of a disk": os.dup(file.fileno()),
            "one that can be cut short": anonymous(length, seals=False),
            "another name": anonymous(length, seals=True, name="other"),
            "too short": anonymous(length - 1, seals=True),
        }
        for what, number in numbers.items():
            told = {"process": os.getpid(), "number": number, "nonce": nonce}
            assert open_offer(told, 1) is None, what
            os.close(number)
    number = anonymous(length, seals=True)
    told = {"process": os.getpid(), "number": number, "nonce": nonce}
    assert open_offer(told, 1) is not None
    wrong = [
        told | {"nonce": bytes(31).hex() + "01"},
        told | {"nonce": ""},
        told | {"nonce": "x"},
        told | {"nonce": 5},
        told | {"process": "../../etc"},
        told | {"process": -1},
        {"process": 1},
        None,
        [],
        "memfd",
    ]
    for one in wrong:
        assert open_offer(one, 1) is None, one
    os.close(number)


def test_a_file_that_is_gone_is_refused():
    offer = Offer(1)
    offer.close()
    assert open_offer(offer.told, 1) is None


def test_no_room_for_a_file(monkeypatch):
    def full(*_):
        raise OSError("too many open files")

    assert make_offer(0) is None
    monkeypatch.setattr(os, "memfd_create", full)
    assert make_offer(1) is None


def test_neighbours():
    assert neighbours(["a", "b", "a", "", "a", ""], 0, [1, 2, 3, 4, 5]) == [2, 4]
    assert neighbours(["a", "b", "a", "", "a", ""], 1, [0, 2, 3, 4, 5]) == []
    assert neighbours(["a", "b", "a", "", "a", ""], 3, [0, 1, 2, 4, 5]) == []
    assert neighbours(["a", "b", "a", "", "a", ""], 0, [1, 2]) == [2]


# -- a comm over it ----------------------------------------------------------------------


def on_machines(monkeypatch: pytest.MonkeyPatch, names: Mapping[int, str]) -> None:
    """Let the workers of this process take themselves to be on these machines."""
    connect = tcp.TcpComm._share_memory
    local = threading.local()
    monkeypatch.setattr(wired, "machine", lambda: local.name)

    def sharing(comm: tcp.TcpComm) -> None:
        local.name = names[comm.rank]
        connect(comm)

    monkeypatch.setattr(tcp.TcpComm, "_share_memory", sharing)


def shared(comm: tcp.TcpComm) -> list[int]:
    """The other workers that a comm shares memory with."""
    return [one for one in comm._others if isinstance(comm._pipes[one][0], SharedPipe)]


def worked(comm):
    """Something of all that a comm does."""
    rng = np.random.default_rng(comm.rank)
    buffer = NDArray.view(rng.normal(size=700_001).astype(np.float32))
    coded, spread = buffer.copy(), buffer.copy()
    comm.mean(buffer, weight=1 + comm.rank)
    comm.mean(coded, codec="int8")
    comm.broadcast(spread, root=1)
    server = comm.server(NDArray.zeros((1000,)), lambda staleness: 1.0)
    pulled = NDArray.zeros((1000,))
    server.push(NDArray.full((1000,), 1.0 + comm.rank), server.pull(pulled))
    comm.barrier()
    server.pull(pulled)
    comm.barrier()
    server.close()
    found = [np.array(one) for one in (buffer, coded, spread, pulled)]
    return [*found, comm.gather(comm.rank), comm.traffic.sent, comm.traffic.received]


MACHINES: list[tuple[dict[int, str], list[list[int]]]] = [
    ({0: "", 1: "", 2: "", 3: ""}, [[], [], [], []]),
    ({0: "a", 1: "b", 2: "a", 3: "b"}, [[2], [3], [0], [1]]),
    ({0: "a", 1: "a", 2: "b", 3: "a"}, [[1, 3], [0, 3], [], [0, 1]]),
    ({0: "a", 1: "a", 2: "a", 3: "a"}, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]),
]


@pytest.mark.parametrize(("names", "near"), MACHINES)
def test_the_bits_and_the_traffic_do_not_depend_on_the_machines(names, near, monkeypatch):
    with group("local", 4) as comms:
        expected = [one[:5] for one in together(comms, worked)]
    on_machines(monkeypatch, dict.fromkeys(range(4), ""))
    with group("tcp", 4) as comms:
        plain = together(comms, worked)
    monkeypatch.undo()
    on_machines(monkeypatch, names)
    with group("tcp", 4) as comms:
        assert [shared(comm) for comm in comms] == near
        actual = together(comms, worked)
    for mine, theirs, truth in zip(actual, plain, expected, strict=True):
        for one, two, three in zip(mine[:4], theirs[:4], truth[:4], strict=True):
            assert np.array_equal(one, two)
            assert np.array_equal(one, three)
        assert mine[4:] == theirs[4:]


def refused(told, workers, channels):
    return None


def none_made(workers: int, channels: int) -> None:
    return None


@pytest.mark.parametrize(("name", "instead"), [("open_offer", refused), ("make_offer", none_made)])
def test_without_a_file_the_connections_stay(name, instead, monkeypatch):
    monkeypatch.setattr(wired, name, instead)
    with group("tcp", 3) as comms:
        assert [shared(comm) for comm in comms] == [[], [], []]
        assert together(comms, lambda comm: comm.sum(comm.rank)) == [3, 3, 3]


def test_the_switch(monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    assert machine() == ""
    with group("tcp", 2) as comms:
        assert [shared(comm) for comm in comms] == [[], []]


def test_connections_that_memory_replaces_are_closed():
    """Three of four, at both ends; the file is closed too."""
    from sparknet.comm.mesh import Listener

    def files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with group("tcp", 3):
        pass
    before = files()
    comms = connected([Listener() for _ in range(3)])
    heartbeats, own = 3 * 2, 3 * 3  # of each worker: a pair of sockets and a selector
    assert files() - before == heartbeats + own
    for comm in comms:
        comm.close()
    assert files() == before
