"""14 workers, then 12, then 13: the grid of more than a dozen comes and goes with its members."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparknet.comm.grid import grid_of
from sparknet.loaders.order import Order
from sparknet.native import NDArray
from sparknet.training.strategies import Averaging, DiLoCo, Strategy
from sparknet.training.virtual import Cluster, VirtualComm
from sparknet.training.virtual.comm import perform
from sparknet.training.workers.join import join
from sparknet.training.workers.rounds import Parting, Rounds
from tests.training import small
from tests.training.workers import test_joining
from tests.training.workers.test_joining import ITERATIONS, PLAN, STEPS, Worker, rounds_of

SIZES, EACH = (14, 12, 13), 2
"""The workers of each generation, and how many rounds the first ones last."""


def trained(strategy: Strategy) -> list[Worker]:
    """All that ever took part; the last ones leave, and another one comes."""
    every: list[Worker] = [Worker(rank, strategy) for rank in range(SIZES[0])]
    staying = every
    for number, size in enumerate(SIZES):
        staying = staying[:size]
        fresh = [Worker(rank, strategy) for rank in range(len(staying), size)]
        every, staying = every + fresh, staying + fresh
        is_last = number == len(SIZES) - 1
        comms = VirtualComm.group(size, Cluster(step=1.0))
        found = perform(comms[0].stage, part(staying, comms, EACH * number, is_last))
        kind = type(None) if is_last else Parting
        assert all(isinstance(one, kind) for one in found), found
    return staying + [one for one in every if one not in staying]


def part(
    workers: list[Worker], comms: list[VirtualComm], heard: int, is_last: bool
) -> Callable[[int], None]:
    """What each does in a generation, which begins after so many rounds."""

    def work(rank: int) -> None:
        one, comm = workers[rank], comms[rank]
        begins = one.rounds is None and not heard
        if one.rounds is None:
            one.rounds = Rounds(one.learner, one.strategy, comm, PLAN, one.hooks(), True)
        rounds = one.rounds

        def newcomers() -> bool:
            return not is_last and rounds.state.round >= heard + EACH

        hooks = replace(one.hooks(), newcomers=newcomers)
        rounds.hooks = hooks
        if begins:
            rounds.start()
        else:
            join(rounds, comm, hooks, heard)
        rounds.go_on()

    return work


def by_loops() -> Any:
    """Averaging by hand, with means in float64."""
    learners = [small.learner(rank, SIZES[0]) for rank in range(SIZES[0])]
    for one in learners[1:]:
        one.weights.copy_from(learners[0].weights)
    left, made = ITERATIONS * SIZES[0], 0
    while left > 0:
        if made and made % EACH == 0 and made // EACH < len(SIZES):
            size = SIZES[made // EACH]
            taken = [one.feed.cursor for one in learners]
            learners = learners[:size]
            for rank in range(len(learners), size):
                fresh = small.learner(rank, size)
                fresh.weights.copy_from(learners[0].weights)
                for mine, its in zip(fresh.histories, learners[0].histories, strict=True):
                    mine.copy_from(its)
                learners.append(fresh)
            for rank, one in enumerate(learners):
                order = Order(small.RECORDS, 3, True, rank, size)
                order.seek({"of": taken})
                one.feed.batches._work.order = order  # type: ignore[attr-defined]
                one.feed.seek(order.cursor)
        count = min(STEPS, -(-left // len(learners)))
        for one in learners:
            one.step(count)
        mean = np.mean([np.array(one.weights, np.float64) for one in learners], 0)
        for one in learners:
            one.weights.copy_from(NDArray(mean.astype(np.float32)))
        left, made = left - count * len(learners), made + 1
    return small.weights(learners[0])


@pytest.mark.parametrize(
    "strategy",
    [Averaging(STEPS), DiLoCo(2 * STEPS, fragments=2, overlap=1, codec="int8")],
    ids=["averaging", "streaming"],
)
def test_members_change_about_a_dozen(strategy, monkeypatch):
    monkeypatch.setattr(test_joining, "WORKERS", SIZES[0])
    assert [len(grid_of(size).axes) for size in SIZES] == [2, 1, 2]
    workers = trained(strategy)
    said = rounds_of(workers)
    assert [event["round"] for event in said] == [*range(1, len(said) + 1)]
    assert [len(event["workers"]) for event in said] == [14, 14, 12, 12, 13, 13, 13]
    used = Counter(number for one in workers for step in one.taken for number in step)
    assert sum(used.values()) == said[-1]["total_samples"] == 169 * small.BATCH
    assert {used[number] for number in range(small.RECORDS)} == {7, 8}
    weights = [small.weights(one.learner) for one in workers[: SIZES[-1]]]
    for other in weights[1:]:
        np.testing.assert_array_equal(other, weights[0])
    if isinstance(strategy, Averaging):
        np.testing.assert_allclose(weights[0], by_loops(), rtol=0, atol=1e-5)
