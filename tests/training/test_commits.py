"""A worker is lost in the middle of a mean, at each message: the others end with the same bits.

They are the bits of the mean over all, if one of those left has it, else those of before, of which
a new generation then takes the mean.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sparknet.errors import CommError
from sparknet.native import NDArray
from sparknet.training import tcp
from sparknet.training.codecs import Codec
from sparknet.training.commits import Commits
from sparknet.training.local import LocalComm
from sparknet.training.mesh import Listener
from sparknet.training.tcp import TcpComm
from sparknet.training.wire import Pipe
from tests.training.groups import SECRET, connected, in_threads, together

SIZE = 1500


class Cut(Exception):
    """This worker is gone."""


class Cutting:
    """A pipe that is cut off after so many messages of all of a worker's pipes."""

    def __init__(self, pipe: Pipe, count: Callable[[], None]) -> None:
        self._pipe, self._count = pipe, count

    def send(self, data: memoryview) -> None:
        self._count()
        self._pipe.send(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)


class Victim:
    """Ends a worker's connections at a message that it sends."""

    def __init__(self, comm: TcpComm, after: int) -> None:
        self.comm, self.left, self.lock = comm, after, threading.Lock()
        for one, sender in comm._senders.items():
            sender.pipe = Cutting(comm._pipes[one][0], self.count)  # type: ignore[assignment]

    def count(self) -> None:
        with self.lock:
            self.left -= 1
            gone = self.left < 0
        if gone:
            self.die()
            raise OSError("gone")

    def die(self) -> None:
        for pipes in self.comm._pipes:
            for pipe in pipes:
                pipe.end()


def start(rank: int) -> NDArray:
    return NDArray.view(np.random.default_rng(rank).standard_normal(SIZE).astype(np.float32))


def twice(comm: Any, buffer: NDArray, codec: Codec | None) -> None:
    """Two means, with a change between them, as two rounds have it."""
    comm.mean(buffer, codec=codec)
    buffer.scale(1.5)
    comm.mean(buffer, codec=codec)


def lose(size: int, after: int, codec: Codec | None) -> tuple[list[int], list[Any]]:
    """How many means those left have committed, and their buffers and rounding errors."""
    comms = connected([Listener() for _ in range(size)])
    for comm in comms:
        comm.commits = Commits()
    victim = Victim(comms[-1], after)
    buffers = [start(rank) for rank in range(size)]

    def run(rank: int) -> Callable[[], None]:
        return lambda: twice(comms[rank], buffers[rank], codec)

    found = in_threads([run(rank) for rank in range(size)])
    victim.die()
    if not any(isinstance(one, CommError) for one in found[:-1]):
        assert not any(found)
    left = LocalComm.group(size - 1)
    settled = together(left, lambda comm: comms[comm.rank].commits.settle(comm))
    counts = [comms[rank].commits.done for rank in range(size - 1)]
    errors = [
        [np.array(one) for one in comm.feedback(codec, SIZE)] if codec else []
        for comm in comms[:-1]
    ]
    for comm in comms:
        comm.close()
    if codec is None and not any(settled) and not counts[0]:
        go_on(left, buffers)
    return counts, [[np.array(one), *more] for one, more in zip(buffers, errors, strict=False)]


def go_on(left: list[LocalComm], buffers: list[NDArray]) -> None:
    """Those left take the mean among themselves."""
    ends = [one.copy() for one in buffers[:-1]]
    together(left, lambda comm: comm.mean(ends[comm.rank]))
    expected = np.mean([np.asarray(start(rank), np.float64) for rank in range(len(left))], axis=0)
    for end in ends:
        np.testing.assert_array_equal(end, ends[0])
        np.testing.assert_allclose(end, expected, rtol=1e-5, atol=1e-6)


def undisturbed(size: int, codec: Codec | None) -> list[list[list[Any]]]:
    """By committed means, each worker's buffer and errors after so many, and before the next."""

    def one(comm: Any) -> list[list[Any]]:
        buffer, states = start(comm.rank), []
        for number in range(3):
            errors = comm.feedback(codec, SIZE) if codec else ()
            states.append([np.array(buffer), *(np.array(one) for one in errors)])
            if number < 2:
                comm.mean(buffer, codec=codec)
                if not number:
                    errors = comm.feedback(codec, SIZE) if codec else ()
                    states.append([np.array(buffer), *(np.array(one) for one in errors)])
                    buffer.scale(1.5)
        return states

    return together(LocalComm.group(size), one)


@pytest.mark.parametrize(("size", "codec", "every"), [(3, None, 1), (4, None, 2), (3, "int8", 1)])
def test_a_loss_at_every_message(
    size: int, codec: Codec | None, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "_CHUNK", 24)
    monkeypatch.setattr(tcp, "_PATIENCE", 0.05)
    whole = undisturbed(size, codec)
    outcomes, after = Counter[int](), 0
    while True:
        counts, found = lose(size, after, codec)
        assert len(set(counts)) == 1, (after, counts)
        outcomes[counts[0]] += 1
        for rank, mine in enumerate(found):
            # Between two means a worker may have scaled its buffer or not, when it hears of it.
            known = {0: [0], 1: [1, 2], 2: [3]}[counts[0]]
            assert any(
                all(np.array_equal(a, b) for a, b in zip(mine, whole[rank][state], strict=True))
                for state in known
            ), (after, counts, rank)
        if counts[0] == 2 and after > 120:
            break
        after += every
    assert min(outcomes[number] for number in (0, 1, 2)) >= 1
    assert sum(outcomes.values()) >= 60


def test_a_record_of_another_generation_is_refused() -> None:
    listeners = [Listener(), Listener()]
    places = [one.address for one in listeners]

    def joined(rank: int) -> Callable[[], TcpComm]:
        return lambda: TcpComm.connect(listeners[rank], rank, places, SECRET, 5.0, generation=rank)

    found = in_threads([joined(0), joined(1)])
    assert all("out of step" in str(one) for one in found)
