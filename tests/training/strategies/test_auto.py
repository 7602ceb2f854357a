"""Auto: the number of steps follows from what was measured, and reaches the share it aims at."""

import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.net.learner import SolverLearner, Steps
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import Auto
from sparknet.training.strategies.auto import Spent, Tuned, _steps
from sparknet.training.workers.rounds import work
from tests.training import small

Times = Callable[[int, int, int], tuple[float, float]]
"""Seconds computing and communicating of a worker in a round of so many steps."""


def tuned() -> Tuned:
    return Tuned(center=NDArray.zeros((1,)))


@pytest.mark.parametrize(
    ("steps", "syncs", "ratio", "chosen"),
    [
        ([9.0, 0.02, 0.02], [9.0, 0.1, 0.1], 5.0, 25),
        ([9.0, 0.02, 0.02], [9.0, 0.1, 0.1], 1.0, 5),
        ([9.0, 0.02, 0.02], [9.0, 0.01, 0.01], 5.0, 2.5),
        ([9.0, 1.0], [9.0, 0.001], 5.0, 1),
        ([9.0, 0.001], [9.0, 10.0], 5.0, 500),
        ([0.0, 0.0], [1.0, 1.0], 5.0, 500),
    ],
)
def test_rounds_follow_from_the_times(steps, syncs, ratio, chosen):
    auto, state = Auto(ratio=ratio, measured=len(steps)), tuned()
    for step, sync in zip(steps, syncs, strict=True):
        note = auto._correct(state, [[1, 1.5 * step, 0.5 * sync], [1, 0.5 * step, 1.5 * sync]])
    assert state.length == pytest.approx(chosen)
    assert f"rounds have {chosen:.3g} steps" in note


def simulate(auto: Auto, workers: int, rounds: int, times: Times) -> tuple[float, float]:
    """The share of time in synchronisation, all measured rounds included, and the last length."""
    state = tuned()
    computing = communicating = 0.0
    spent: list[Spent] = []
    for number in range(rounds):
        if spent:
            auto._correct(state, spent)
        steps = _steps(state)
        taken = [times(number, rank, steps) for rank in range(workers)]
        spent = [[steps, *one] for one in taken]
        computing += sum(one[0] for one in taken)
        communicating += sum(one[1] for one in taken)
    return communicating / (communicating + computing), state.length


@pytest.mark.parametrize("sync", [0.3, 0.7, 2.0, 20.0])
def test_it_reaches_its_share_where_times_vary(sync):
    """The least synchronisation is half of the mean one, and a step of a busy machine is slow."""
    dice = random.Random(5)

    def times(number: int, rank: int, steps: int) -> tuple[float, float]:
        return steps * dice.uniform(0.8, 1.4), sync * (0.5 + dice.expovariate(2.0))

    share, _ = simulate(Auto(), 3, 300, times)
    assert share == pytest.approx(1 / 6, abs=0.03)


def test_it_follows_times_that_change():
    def times(number: int, rank: int, steps: int) -> tuple[float, float]:
        return steps * 1.0, 2.0 if number < 100 else 8.0

    share, length = simulate(Auto(), 2, 400, times)
    assert length == pytest.approx(40, rel=0.11)
    assert share == pytest.approx(1 / 6, abs=0.03)


def test_waiting_for_a_slow_worker_counts():
    """Worker 1 takes a tenth longer, so that worker 0 waits for it in every round."""

    def times(number: int, rank: int, steps: int) -> tuple[float, float]:
        return steps * (1.1 if rank else 1.0), 2.0 + (0.0 if rank else 0.1 * steps)

    share, length = simulate(Auto(), 2, 300, times)
    assert share == pytest.approx(1 / 6, abs=0.02)
    assert 10 < length < 20


def test_what_longer_rounds_cannot_save_ends_at_the_longest():
    def times(number: int, rank: int, steps: int) -> tuple[float, float]:
        return steps * (2.0 if rank else 1.0), 1.0 + (0.0 if rank else 1.0 * steps)

    _, length = simulate(Auto(longest=64), 2, 100, times)
    assert 58 < length <= 64


def test_one_slow_round_makes_rounds_no_more_than_twice_as_long():
    auto, state = Auto(measured=2), tuned()
    for _ in range(3):
        auto._correct(state, [[1, 1.0, 1.0]] * 2)
    assert state.length == 5
    auto._correct(state, [[5, 5.0, 1000.0]] * 2)
    assert state.length == 10


def test_momentum_is_averaged_in_short_rounds_and_does_not_flip():
    """Averaging it doubles what is sent: at 30 steps with it and 15 without, it is kept."""
    auto, state, seen = Auto(), tuned(), []
    for _ in range(60):
        steps = max(int(state.length), 1)
        auto._correct(state, [[steps, 1.0 * steps, 6.0 if state.averages_momentum else 3.0]])
        seen.append(state.averages_momentum)
    assert seen == sorted(seen, reverse=True)
    assert seen[0]
    assert not seen[-1]
    assert state.length == pytest.approx(15, rel=0.11)


class TimedLearner(SolverLearner):
    """Says that a step takes a second."""

    def step(self, count: int) -> Steps:
        return replace(super().step(count), seconds=float(count))


def with_sync_of(comm, seconds):
    """Says that each mean of a buffer takes so long, and nothing else takes any time."""
    mean = comm.mean

    def timed(*args, **kwargs):
        mean(*args, **kwargs)
        comm.traffic.seconds = round(comm.traffic.seconds / seconds) * seconds + seconds

    comm.mean = timed
    made: Comm = comm
    return made


def test_it_says_what_it_chose_and_does_so_on_all_workers():
    """Worker 0 needs 1 s for the mean of weights and as much for that of histories, worker 1 2 s:
    3 s a round, a second a step."""
    learners = []
    for rank in range(2):
        made = small.learner(rank, 2)
        learners.append(TimedLearner(made.solver, made.feed))
    events = []

    def run(rank, comm):
        hooks = Hooks(events.append) if rank == 0 else Hooks()
        strategy = Auto(measured=3)
        work(learners[rank], strategy, with_sync_of(comm, 1.0 + rank), RunPlan(steps=90), hooks)

    small.together(2, run)
    notes = [event for event in events if event["event"] == "note"]
    assert notes[0]["round"] == 4
    told = r"a synchronisation (2\.9\d|3(\.0\d)?)e\+03 ms: rounds have 15 steps from now on"
    assert re.search(told, notes[0]["text"])
    rounds = [event["steps"] for event in events if event["event"] == "round"]
    assert rounds == [1, 1, 1, 15, 15, 15, 15, 15, 12]
    assert len(notes) == 1


def test_a_resumed_run_knows_what_was_measured():
    state = tuned()
    for _ in range(8):
        Auto()._correct(state, [[1, 1.0, 1.0]] * 2)
    again = tuned()
    for name, value in state.numbers().items():
        setattr(again, name, value)
    assert again.length == state.length == 5
    notes = [Auto()._correct(one, [[5, 5.0, 9.0]] * 2) for one in (state, again)]
    assert notes[0] != ""
    assert (again.length, again.sums) == (state.length, state.sums)
