"""When a run says that it waits for slots: with a clock that the test turns."""

import logging
from dataclasses import dataclass, field
from io import StringIO

import pytest

from sparknet.report import Progress as Shown
from sparknet.training.driver.driver import RunProgress
from sparknet.training.driver.run import Standing, Waiting
from sparknet.training.events import tell


@dataclass
class Driver:
    """What is asked of a real one."""

    present: int = 0
    progress: RunProgress = field(default_factory=RunProgress)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


class Run:
    """A run that looks once a second."""

    def __init__(self, slots: tuple[int | None, int] | None, present: int = 0, starts: int = 1):
        self.clock, self.slots = Clock(), slots
        self.driver = Driver(present, RunProgress(starts=starts))
        self._waiting = Waiting(clock=self.clock)

    def seconds(self, count):
        """What is said meanwhile."""
        said = []
        for _ in range(count):
            self.clock.now += 1
            event = self._waiting.look(self.driver, lambda: self.slots)
            if event is not None:
                said.append((event["seconds"], event["slots"], event["needed"]))
        return said


def test_it_is_said_after_15_seconds_and_then_less_and_less_often():
    assert Run((1, 2)).seconds(130) == [(15, 1, 2), (30, 1, 2), (60, 1, 2), (120, 1, 2)]


def test_who_is_there_is_not_waited_for():
    run = Run((1, 2), present=1)
    assert run.seconds(100) == []
    run.driver.present = 0
    assert run.seconds(15) == [(15, 1, 2)]
    run.driver.present = 2
    assert run.seconds(1) == []
    run.driver.present = 0
    assert run.seconds(29) == [(15, 1, 2)]


def test_enough_slots_before_the_first_attempt_are_told_after_a_minute():
    """The data may take long to come, or all workers hang before their first call."""
    assert Run((2, 2), starts=0).seconds(130) == [(60, 2, 2), (120, 2, 2)]
    assert Run((None, 2), starts=0).seconds(100) == [(60, None, 2)]
    assert Run((1, 2), starts=0).seconds(15) == [(15, 1, 2)]


def test_without_a_count_of_slots_a_lost_attempt_says_it():
    """As under Spark Connect."""
    assert Run((None, 2)).seconds(15) == [(15, None, 2)]
    assert Run((2, 2)).seconds(15) == [(15, 2, 2)]


def test_processes_of_one_machine_need_no_slots():
    assert Run(None).seconds(100) == []


def test_after_the_end_nobody_waits():
    run = Run((1, 2))
    run.driver.progress.outcome = {}
    assert run.seconds(100) == []


@pytest.mark.parametrize(
    ("slots", "logged", "shown"),
    [
        (1, "waiting for slots, there are 1 of the 2 that the workers need", " (1 there)"),
        (2, "waiting for Spark to start 2 workers, in 2 slots", " (2 there)"),
        (None, "waiting for 2 slots at once (Spark Connect does not say how many there are)", ""),
    ],
)
def test_what_people_read(caplog, slots, logged, shown):
    event = {"event": "waiting", "time": 0.0, "seconds": 15.2, "slots": slots, "needed": 2}
    stream = StringIO()
    tell(Shown(stream, terminal=False), event)
    record = (
        "sparknet.training",
        logging.WARNING,
        f"nobody has worked for 15 s: {logged}",
    )
    assert caplog.record_tuples == [record]
    assert stream.getvalue() == f"step 0: waiting for 2 slots{shown} for 15 s\n"


def test_a_standstill_is_told_less_and_less_often():
    standing, workers = Standing(2.0), {"0": "computes"}
    times = [1.0, 2.0, 3.0, 4.0, 7.9, 8.0, 15.0, 16.0]
    told = [standing.look((seconds, workers)) for seconds in times]
    assert [one and one["seconds"] for one in told] == [None, 2.0, None, 4.0, None, 8.0, None, 16.0]
    assert standing.look(None) is None
    again = standing.look((2.0, workers))
    assert again is not None
    assert (again["event"], again["workers"]) == ("standstill", workers)


def test_what_people_read_of_a_standstill(caplog):
    workers = {"0": "computes", "1": "waits for worker 0, taking a mean"}
    event = {"event": "standstill", "time": 0.0, "seconds": 60.4, "workers": workers}
    stream = StringIO()
    tell(Shown(stream, terminal=False), event)
    said = (
        "no worker has got on for 60 s: worker 0 computes; "
        "worker 1 waits for worker 0, taking a mean"
    )
    assert caplog.messages == [said]
    assert stream.getvalue() == f"step 0: {said}\n"
