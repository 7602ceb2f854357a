"""Slow workers: who is called one, and what a run with a worker that is really slow says."""

import numpy as np
import pytest

from sparknet.report import Progress
from sparknet.spark import Trainer
from sparknet.training import Averaging
from sparknet.training.driver.stragglers import Slow, Stragglers
from tests.spark.burner import burning
from tests.spark.digits import NET, pixels, solver

SLOW = 1


def workers(*steps):
    return [{"seconds_computing": seconds, "steps": count} for seconds, count in steps]


def test_a_worker_is_slow_by_its_steps_for_three_rounds():
    pace, slower = Stragglers(), workers((2.0, 20), (2.0, 10), (2.0, 20))
    found = [pace.slow(slower) for _ in range(5)]
    assert found == [[], [], [Slow(worker=1, seconds=0.2, median=0.1)], [], []]


def test_one_that_is_fifty_times_slower_is_named_after_its_first_round():
    pace, slower = Stragglers(), workers((1.0, 10), (50.0, 10), (1.2, 10))
    found = [pace.slow(slower) for _ in range(4)]
    assert found == [[Slow(worker=1, seconds=5.0, median=0.11)], [], [], []]
    late = workers((1.0, 10), (1.0, 10), (60.0, 10))
    assert pace.slow(late) == [Slow(worker=2, seconds=6.0, median=0.1)]


def test_a_good_round_between_begins_anew():
    pace, slower, even = Stragglers(), workers((1.0, 10), (1.6, 10)), workers((1.0, 10), (1.4, 10))
    found = [pace.slow(one) for one in (slower, slower, even, slower, slower, slower)]
    assert found == [[], [], [], [], [], [Slow(worker=1, seconds=0.16, median=0.1)]]


@pytest.mark.parametrize(("factor", "names"), [(1.0, []), (3.0, [0])])
def test_rounds_of_milliseconds_are_compared_together(factor, names):
    """Two minutes of ten steps of 0.3 ms, some of which the scheduler of the machine stops."""
    random, pace, found = np.random.default_rng(0), Stragglers(), []
    late = random.exponential(0.004, (20_000, 2)) * (random.random((20_000, 2)) < 0.3)
    late[::1000] += 0.15
    for first, second in late + 0.003 * np.array([factor, 1.0]):
        found += pace.slow(workers((first, 10), (second, 10)))
    assert [one.worker for one in found] == names


@pytest.mark.parametrize("alone", [workers((3.0, 1)), workers((3.0, 30), (0.0, 0)), []])
def test_nobody_is_slow_alone(alone):
    pace = Stragglers()
    assert [pace.slow(alone) for _ in range(4)] == [[]] * 4


def test_a_slow_worker_is_named(session, capsys):
    """Rounds of as many steps for each: all wait, and the user hears for whom."""
    history = fit(session, Averaging(steps=2), steps=10, on_event=Progress())
    (slow,) = events_of(history, "slow")
    (met,) = events_of(history, "workers")
    where = f"{met['workers'][SLOW]['host']} (process {met['workers'][SLOW]['process']})"
    assert (slow["worker"], slow["where"]) == (SLOW, where)
    assert slow["iteration"] == 2 * slow["round"] <= 10  # by how slow it is
    assert slow["seconds"] > 0.1 > 1.5 * slow["median"] > 0
    said = f"step {slow['iteration']}: worker 1 on {where} is slow: {slow['seconds']:.3g} s a step"
    assert f"{said}, others {slow['median']:.3g} s\n" in capsys.readouterr().err


def test_rounds_of_a_time_do_not_wait_for_it(session):
    history = fit(session, Averaging(seconds=0.3), seconds=2.4)
    rounds = [one["workers"] for one in events_of(history, "round")]
    assert len(rounds) >= 3
    for fast, slow in rounds:
        assert fast["steps"] > 2 * slow["steps"] >= 2
        assert fast["seconds_computing"] > 0.2  # its time was its own
    assert [one["worker"] for one in events_of(history, "slow")] == [SLOW]


def fit(session, strategy, **settings):
    """The events of a training with a worker to whom each step costs a tenth of a second more.

    The other one takes thousands of steps over its forty rows, so the learning rate is small.
    """
    slowed = solver().replace(NET, burning(NET, SLOW, 0.1))
    slowed = slowed.replace("base_lr: 0.05 momentum: 0.9", "base_lr: 1e-5 momentum: 0")
    columns = {"data": "pixels", "label": "digit"}
    trainer = Trainer(slowed, strategy, workers=2, columns=columns, **settings)
    return trainer.fit(pixels(session, 80)).history


def events_of(history, kind):
    return [event for event in history if event["event"] == kind]
