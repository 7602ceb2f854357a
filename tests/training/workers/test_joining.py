"""A worker is lost at each message of some rounds: those that are left end with the same bits.

They are the bits of a run in which it left between two rounds; and those of averaging are the bits
of loops that know nothing of comms.
"""

import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from sparknet.comm import tcp_comm as tcp
from sparknet.comm import wired_comm as wired
from sparknet.comm.mesh import Listener
from sparknet.comm.tcp_comm import TcpComm
from sparknet.comm.wire import Pipe
from sparknet.errors import CommError
from sparknet.loaders.order import Order
from sparknet.native import NDArray
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import (
    BMUF,
    Averaging,
    DiLoCo,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)
from sparknet.training.workers.join import join
from sparknet.training.workers.rounds import Rounds
from tests.comm.groups import SECRET, connected, in_threads
from tests.training import small

TRAINED: list[tuple[int, ...]] = [(0, 1), (0,), (1,), ()]
WORKERS, STEPS, ITERATIONS = 3, 2, 12
ROUNDS = ITERATIONS // STEPS
PLAN = RunPlan(steps=ITERATIONS, records=small.RECORDS, batch_size=small.BATCH, validate_every=0)


NUMBERS = {row.tobytes(): number for number, row in enumerate(small.records().arrays["x"])}


@pytest.fixture(autouse=True)
def small_messages(monkeypatch):
    monkeypatch.setattr(tcp, "_CHUNK", 24)
    monkeypatch.setattr(wired, "_PATIENCE", 0.05)


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


class Worker:
    """One worker, its records and what it told."""

    def __init__(self, rank: int, strategy: Strategy) -> None:
        self.learner = small.learner(rank, WORKERS)
        self.strategy, self.rank = strategy, rank
        self.events: list[dict[str, Any]] = []
        self.rounds: Rounds | None = None
        self.taken: list[list[int]] = []
        """The numbers of the records that it has trained on, by step."""
        feed = self.learner.feed
        load = feed.load

        def noted() -> int:
            count = load()
            rows = feed.net.blobs["x"].data  # type: ignore[attr-defined]
            self.taken.append([NUMBERS[row.tobytes()] for row in np.asarray(rows)])
            return count

        feed.load = noted  # type: ignore[method-assign]

    def hooks(self) -> Hooks:
        batches = self.learner.feed.batches  # type: ignore[attr-defined]
        return Hooks(on_event=self.events.append, records=batches)

    def begin(self, comm: Any, leave_after: int | None, trains: bool) -> None:
        """Train; the one that leaves does so between two rounds.

        Others hear of it before they train in the next one, or then.
        """
        rounds = Rounds(self.learner, self.strategy, comm, PLAN, self.hooks(), True)
        self.rounds = rounds
        left = rounds._steps_left

        def until() -> int:
            if rounds.place is not None and rounds.place.rounds == leave_after and not trains:
                raise Cut if self.rank == WORKERS - 1 else CommError("one left")
            return left()

        def stopping(reason: str) -> Any:
            assert rounds.place is not None
            if rounds.place.rounds == leave_after:
                raise Cut if self.rank == WORKERS - 1 else CommError("one left")
            return stop(reason)

        stop = rounds._stop
        rounds._steps_left = until  # type: ignore[method-assign]
        rounds._stop = stopping  # type: ignore[method-assign]
        with comm:
            rounds.start()
            try:
                rounds.go_on()
            finally:
                rounds._steps_left = left  # type: ignore[method-assign]
                rounds._stop = stop  # type: ignore[method-assign]

    def go_on(self, comm: Any, heard: int) -> None:
        if self.rounds is None:
            self.rounds = Rounds(self.learner, self.strategy, comm, PLAN, self.hooks(), True)
        with comm:
            join(self.rounds, comm, self.hooks(), heard)
            self.rounds.go_on()


def rounds_of(workers: list[Worker]) -> list[Any]:
    """The events of rounds, in order."""
    return [event for one in workers for event in one.events if event["event"] == "round"]


def lose(
    strategy: Strategy,
    after: int | None = None,
    leave_after: int | None = None,
    trained: tuple[int, ...] = (),
) -> tuple[int, list[Any], list[Any]]:
    """The last is lost after so many messages, or between two rounds.

    Of the others some have ``trained`` in the next round then, the others train it anew.

    Returns how many rounds it took part in, and weights and cursors at the end.
    """
    workers = [Worker(rank, strategy) for rank in range(WORKERS)]
    comms = connected([Listener() for _ in workers])
    victim = None if after is None else Victim(comms[-1], after)

    def first(one: Worker) -> Callable[[], None]:
        return lambda: one.begin(comms[one.rank], leave_after, one.rank in trained)

    found = in_threads([first(one) for one in workers])
    if victim is not None:
        victim.die()
    staying = workers[:-1]
    if all(one is None for one in found[:-1]):
        return -1, [small.weights(one.learner) for one in staying], []
    assert all(one is None or isinstance(one, CommError) for one in found[:-1]), found
    heard = len(rounds_of(staying))
    others = connected([Listener() for _ in staying])

    def second(one: Worker) -> Callable[[], None]:
        return lambda: one.go_on(others[one.rank], heard)

    assert in_threads([second(one) for one in staying]) == [None] * len(staying)
    assert staying[0].rounds is not None
    said = rounds_of(staying)
    assert [event["round"] for event in said] == [*range(1, len(said) + 1)]
    took = sum(len(event["workers"]) == WORKERS for event in said)
    check_records([one.taken for one in staying] + [workers[-1].taken[: took * STEPS]])
    cursors = [one.learner.state()["cursor"] for one in staying]
    return took, [small.weights(one.learner) for one in staying], cursors


def check_records(taken: list[list[list[int]]]) -> None:
    """In each epoch every record was used once by somebody: none twice before all were once."""
    used = Counter(number for steps in taken for step in steps for number in step)
    assert sum(used.values()) == ITERATIONS * WORKERS * small.BATCH
    assert {used[number] for number in range(small.RECORDS)} == {1, 2}


@cache
def left(strategy: Strategy, rounds: int) -> list[tuple[list[Any], list[Any]]]:
    """Weights and cursors, by who had trained when the last one left; in the end all had.

    Then the others end the run with it or without it.
    """
    found = []
    if rounds == ROUNDS:
        return [(lose(strategy)[1], []), (lose(strategy, None, rounds)[1], [])]
    for trained in TRAINED:
        took, weights, cursors = lose(strategy, None, rounds, trained)
        assert took == rounds
        found.append((weights, cursors))
    return found


def by_loops(rounds: int, trained: tuple[int, ...]) -> Any:
    """Averaging by hand: all for so many rounds, then all but the last one."""
    learners = [small.learner(rank, WORKERS) for rank in range(WORKERS)]
    for one in learners:
        one.weights.copy_from(learners[0].weights)
    size, steps, made = WORKERS, 0, 0
    while steps < ITERATIONS * WORKERS:
        count = min(STEPS, -(-(ITERATIONS * WORKERS - steps) // size))
        if made == rounds:
            for rank in trained:
                learners[rank].step(count)
            taken = [one.feed.cursor for one in learners]
            learners.pop()
            for rank, one in enumerate(learners):
                order = Order(small.RECORDS, 3, True, rank, len(learners))
                order.seek({"of": taken})
                one.feed.batches._work.order = order  # type: ignore[attr-defined]
                one.feed.seek(order.cursor)
                if rank not in trained:
                    one.step(count)
            size = len(learners)
        else:
            for one in learners:
                one.step(count)
        mean = NDArray.weighted_mean([one.weights.copy() for one in learners], [1.0] * size)
        for one in learners:
            one.weights.copy_from(mean)
        steps, made = steps + count * size, made + 1
    return small.weights(learners[0])


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_one_that_leaves_between_rounds(rounds):
    for trained, (weights, _) in zip(TRAINED, left(Averaging(STEPS), rounds), strict=True):
        np.testing.assert_array_equal(weights[0], by_loops(rounds, trained))
        np.testing.assert_array_equal(weights[1], weights[0])


@pytest.mark.parametrize(
    ("strategy", "every"),
    [
        (Averaging(STEPS), 2),
        (ElasticAveraging(every=STEPS), 41),
        *(
            pytest.param(one, 13, marks=pytest.mark.slow)
            for one in (
                Averaging(STEPS, momentum="average", codec="int8"),
                DynamicAveraging(0.001, STEPS),
                SlowMo(STEPS),
                DiLoCo(STEPS),
                DiLoCo(2 * STEPS, fragments=2, overlap=1, codec="int8"),
                BMUF(STEPS, momentum="keep"),
            )
        ),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_loss_at_every_message(strategy, every):
    outcomes, after = Counter[int](), 14
    while True:
        took, weights, cursors = lose(strategy, after)
        if took < 0:
            break
        outcomes[took] += 1
        assert any(
            all(map(np.array_equal, weights, expected)) and places in ([], cursors)
            for expected, places in left(strategy, took)
        ), (after, took)
        after += every
    assert len(outcomes) >= 2
    assert sum(outcomes.values()) >= (40 if every == 2 else 2)


def test_a_record_of_another_generation_is_refused():
    listeners = [Listener(), Listener()]
    places = [one.address for one in listeners]

    def joined(rank: int) -> Callable[[], TcpComm]:
        return lambda: TcpComm.connect(listeners[rank], rank, places, SECRET, 5.0, generation=rank)

    found = in_threads([joined(0), joined(1)])
    assert all(isinstance(one, CommError) for one in found)
    # The one that sees it first closes its connections, which the other may see before.
    assert any("out of step" in str(one) for one in found)
