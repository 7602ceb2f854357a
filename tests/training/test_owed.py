"""What workers of Downpour trained and what a codec still owes add up, also when one is lost."""

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparknet.comm.codecs import Codec
from sparknet.errors import CommError
from sparknet.net.learner import Steps
from sparknet.training.strategies import Downpour
from tests.comm.groups import group, in_threads
from tests.training.workers import test_joining
from tests.training.workers.test_joining import WORKERS, Cut, Worker

Sum = Any


class Counting:
    """Adds up a worker's changes of its weights, in float64, and notes what it owes, by round.

    A worker that is to die does so in one of its steps, and lets the others make a few for each of
    its own before.
    """

    def __init__(self, worker: Worker, codec: Codec, dies_at: int | None = None) -> None:
        self.worker, self.codec = worker, codec
        self.changes: dict[int, Sum] = defaultdict(float)
        self.owed: dict[int, Sum] = {}
        self.dies_at, self.made = dies_at, 0
        self.others: list[Counting] = []
        self.may_step = threading.Semaphore(4)
        self._step = worker.learner.step
        worker.learner.step = self.step  # type: ignore[method-assign]

    @property
    def round(self) -> int:
        return self.worker.rounds.state.round  # type: ignore[union-attr]

    def owes(self) -> Sum:
        comm = self.worker.rounds.comm  # type: ignore[union-attr]
        return wide(comm.feedback(self.codec, self.worker.learner.weights.size)[0])

    def step(self, count: int) -> Steps:
        self.owed.setdefault(self.round, self.owes())
        if self.made == self.dies_at:
            for one in self.others:
                one.may_step.release(1000)
            raise Cut
        self.made += 1
        if self.dies_at is None:
            self.may_step.acquire(timeout=0.02)
        for one in self.others:
            one.may_step.release(2)
        before = wide(self.worker.learner.weights)
        done = self._step(count)
        self.changes[self.round] += wide(self.worker.learner.weights) - before
        return done


def wide(values: Any) -> Sum:
    return np.array(values, np.float64)


@pytest.mark.parametrize("codec", ["fp16", "int8"])
@pytest.mark.parametrize("kind", ["local", "tcp"])
@pytest.mark.parametrize("dies_at", [2, 5, 8])
def test_nothing_counts_twice_after_a_loss(kind, codec, dies_at, monkeypatch):
    """The last worker dies in a round, which is lost, as is what it owed before."""
    monkeypatch.setattr(test_joining, "PLAN", replace(test_joining.PLAN, steps=60))
    workers = [
        Worker(rank, Downpour(2, damping=1.0, codec=codec, max_staleness=1000))
        for rank in range(WORKERS)
    ]
    counted = [Counting(one, codec) for one in workers[:-1]]
    lost = Counting(workers[-1], codec, dies_at)
    lost.others = counted
    begun = wide(workers[0].learner.weights)
    with group(kind, WORKERS) as comms:

        def begin(one: Worker) -> Callable[[], None]:
            return lambda: one.begin(comms[one.rank], None, False)

        found = in_threads([begin(one) for one in workers])
    assert isinstance(found.pop(), Cut)
    assert all(isinstance(one, CommError) for one in found)
    with group(kind, WORKERS - 1) as comms:

        def go_on(one: Worker) -> Callable[[], None]:
            return lambda: one.go_on(comms[one.rank], 0)

        assert in_threads([go_on(one) for one in workers[:-1]]) == [None] * (WORKERS - 1)
    ended = wide(workers[0].learner.weights)
    given = sum(sum(one.changes.values()) for one in counted)
    given += sum(change for number, change in lost.changes.items() if number < lost.round)
    owed = sum(one.owes() for one in counted) + lost.owed[lost.round]
    np.testing.assert_allclose(ended + owed - begun, given, rtol=0, atol=3e-6)
