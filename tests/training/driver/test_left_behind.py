"""Workers that the others leave behind: in virtual time, as the driver sees it, and for real."""

from typing import Any

import pytest

from sparknet.errors import SettingError
from sparknet.training.driver.stragglers import Arrivals, Behind
from sparknet.training.local_training import train
from sparknet.training.strategies import AllReduce, Averaging, Downpour
from sparknet.training.virtual import Cluster
from sparknet.training.virtual.cluster import Pace
from sparknet.training.workers import local as local_launcher
from tests.training import small
from tests.training.driver.test_membership import Line, Meeting
from tests.training.test_changing import ARRAYS, SOLVER, of_kind
from tests.training.test_training import nothing_is_left  # noqa: F401

STEPS = 10


def looks(cluster, workers, rounds, arrivals):
    """Who is late, at which time: rounds of a cluster in virtual time, a look each tenth second.

    A round lasts until all that are there have arrived; who is left behind is not there any more.
    """
    paces = [Pace(cluster, rank) for rank in range(workers)]
    here, now, found = set(range(workers)), 0.0, []
    arrivals.meet(here, now)
    for round in range(1, rounds + 1):
        spent = {one: sum(paces[one].step(0.0) for _ in range(STEPS)) for one in sorted(here)}
        begun = now
        for one in sorted(here, key=spent.__getitem__):
            while now + 0.1 < begun + spent[one] and one in here:
                now += 0.1
                for late in arrivals.late(now):
                    found.append((round, now - begun, late))
                    here.discard(late.worker)
            if one in here:
                now = begun + spent[one]
                for late in arrivals.arrive(one, round, spent[one], now):
                    found.append((round, None, late))
                    here.discard(late.worker)
        if here != arrivals._here:
            arrivals.meet(here, now)
    return found


def test_the_deadline_follows_what_the_others_take():
    """Rounds of a second: one sixty times slower is late after fifty seconds, and no one else."""
    cluster = Cluster(step=0.1, slow={3: 60.0, 5: 40.0}, jitter=0.3)
    ((round, at, behind),) = looks(cluster, 64, 4, Arrivals(50.0, 5.0))
    assert (round, behind.worker) == (1, 3)
    assert behind.median == pytest.approx(1.0, rel=0.05)
    assert 50 * behind.median < at <= 50 * behind.median + 0.11


def test_rounds_ten_times_as_long_have_a_deadline_ten_times_as_long():
    cluster = Cluster(step=1.0, slow={3: 60.0})
    ((round, at, behind),) = looks(cluster, 4, 2, Arrivals(50.0, 5.0))
    assert (round, behind.worker, behind.median) == (1, 3, pytest.approx(10.0))
    assert 500.0 < at <= 500.11


def test_in_short_rounds_the_third_one_counts():
    """None of them is as long as the least time; the worker has ended its round then."""
    cluster = Cluster(step=0.001, slow={1: 60.0})
    ((round, at, behind),) = looks(cluster, 3, 6, Arrivals(50.0, 5.0))
    assert (round, at) == (3, None)
    assert behind == Behind(1, pytest.approx(0.6), pytest.approx(0.01))


def test_a_single_late_round_is_no_habit():
    arrivals = Arrivals(10.0, 5.0)
    arrivals.meet([0, 1], 0.0)
    for number, seconds in enumerate((2.0, 2.0, 0.1, 2.0, 2.0), 1):
        assert arrivals.arrive(0, number, 0.1, number) == []
        assert arrivals.arrive(1, number, seconds, number) == []
    assert arrivals.arrive(0, 6, 0.1, 6) == []
    assert arrivals.arrive(1, 6, 2.0, 6) == [Behind(1, 2.0, 0.1)]


def test_the_median_is_unknown_until_most_have_arrived():
    arrivals = Arrivals(10.0, 1.0)
    arrivals.meet(range(4), 0.0)
    arrivals.arrive(0, 1, 0.1, 0.1)
    for now in range(1, 100):
        assert arrivals.late(float(now)) == []
    arrivals.arrive(1, 1, 100.0, 100.0)
    late = [arrivals.late(float(now)) for now in range(100, 1100)]
    assert late[900] == []
    assert late[901] == [Behind(2, 1001.0, 100.0), Behind(3, 1001.0, 100.0)]


def test_a_pause_of_the_driver_counts_for_nobody():
    arrivals = Arrivals(10.0, 1.0)
    arrivals.meet([0, 1], 0.0)
    arrivals.arrive(0, 1, 0.1, 0.1)
    assert arrivals.late(1.0) == []
    assert arrivals.late(1000.0) == []
    assert arrivals.late(1000.2) == [Behind(1, pytest.approx(1.2), 0.1)]


Hosts = list[Any]


def begun(least=1):
    """Three hosts of one worker each, which have just begun the first round."""
    meeting = Meeting(3, 3, least, behind=10.0, late=1.0)
    hosts: Hosts = [Line(number) for number in range(3)]
    lines = dict[int, Any]()
    assert [meeting.carry(host) for host in hosts[::-1]] == [[], [], [0]]
    meeting.meet(hosts, lines)
    return meeting, hosts, lines


def pass_time(meeting: Meeting, seconds: float) -> None:
    for _ in range(round(seconds)):
        meeting.now += 1.0
        meeting.members.leave_behind()


def test_a_host_that_is_late_is_lost_and_told_so():
    meeting, hosts, lines = begun()
    for worker in (0, 1):
        meeting.members.arrive(lines[worker], 1, 0.5)
    pass_time(meeting, 4)
    assert meeting.kinds() == ["generation"]
    pass_time(meeting, 1)
    behind, lost = meeting.events[1:]
    figures = {"worker": 2, "where": "place 2", "seconds": 5.5, "median": 0.5, "factor": 10.0}
    assert behind.items() >= {"event": "behind", "generation": 1, **figures}.items()
    assert lost.items() >= {"event": "lost", "worker": 2, "message": "it was left behind"}.items()
    told = (2, "place 2", "it was left behind")
    assert meeting.call(lines[2], 2, ready=False, after=1)["lost"] == told
    assert meeting.call(lines[0], 0, ready=False, after=1)["lost"] == told
    assert meeting.carry(hosts[2]) == [-1]
    assert meeting.members.departures() == [2]
    assert [meeting.carry(one) for one in hosts[:2]] == [[0, 2], [1]]


def test_it_may_come_back_at_once_and_the_second_time_after_a_minute():
    meeting, hosts, lines = begun()
    for number in (1, 2):
        for worker in (0, 1):
            meeting.members.arrive(lines[worker], number, 0.5)
        pass_time(meeting, 6)
        late = lines.pop(2)
        for line in (late, hosts[2]):
            meeting.members.leave(line)
        hosts[2] = Line(2 + 3 * number)
        if number == 1:
            assert meeting.carry(hosts[2]) == [2]
            meeting.meet(hosts, lines)
    assert meeting.kinds().count("behind") == 2
    assert meeting.carry(hosts[2]) == [-1]
    meeting.now += 60
    assert meeting.carry(Line(2)) != [-1]


def test_it_is_left_behind_also_when_the_others_have_lost_another_one():
    """They wait for it where the next generation begins."""
    meeting, hosts, lines = begun()
    for worker in (0, 1):
        meeting.members.arrive(lines[worker], 1, 0.5)
    for line in (lines.pop(1), hosts[1]):
        meeting.members.leave(line)
    assert meeting.call(lines[0], 0, after=1)["met"] is None
    pass_time(meeting, 6)
    assert meeting.carry(hosts[0]) == [0, 1, 2]
    assert meeting.kinds()[1:] == ["lost", "behind", "lost"]


def test_those_that_are_needed_are_waited_for():
    meeting, _, lines = begun(least=3)
    for worker in (0, 1):
        meeting.members.arrive(lines[worker], 1, 0.5)
    pass_time(meeting, 100)
    assert meeting.kinds() == ["generation"]


@pytest.mark.parametrize("strategy", [AllReduce(), Downpour()], ids=lambda one: one.name)
def test_a_strategy_whose_workers_do_not_wait(strategy):
    settings = {"strategy": strategy}
    said = f"leave_behind=50 is of no use with {strategy.name}"
    with pytest.raises(SettingError, match=said):
        train(SOLVER, ARRAYS, workers=2, min_hosts=1, leave_behind=50, steps=2, **settings)


def test_it_needs_to_know_how_many_are_enough():
    with pytest.raises(SettingError, match="leave_behind=50 needs min_hosts"):
        train(SOLVER, ARRAYS, workers=2, leave_behind=50, steps=2)


# -- real processes ---------------------------------------------------------------------------


def behind_in(trained):
    (event,) = of_kind(trained, "behind")
    return event


def test_a_stopped_worker_is_left_behind_before_its_silence_is_a_loss(monkeypatch):
    """It gets SIGSTOP in the second step of its fourth round."""
    monkeypatch.setattr(local_launcher, "PROGRAM", "tests.training.dying")
    monkeypatch.setenv("DYING", "silent:1:14")
    settings = {"workers": 3, "min_hosts": 2, "restarts": 0, "steps": 40}
    settings |= {"strategy": Averaging(4), "deadline": 6.0, "leave_behind": 20.0}
    trained = train(SOLVER, ARRAYS, **settings)
    behind, (lost,) = behind_in(trained), of_kind(trained, "lost")
    assert (behind["worker"], lost["worker"]) == (1, 1)
    assert lost["message"] == "it was left behind"
    assert 1.5 < behind["seconds"] < 6.0
    assert behind["seconds"] > 20 * behind["median"]
    assert [event["hosts"] for event in of_kind(trained, "generation")] == [3, 2]
    assert trained.outcome.iteration == 40
    assert trained.outcome.samples == 3 * 40 * small.BATCH


def test_one_that_computes_slowly_hands_in_its_third_round(monkeypatch):
    monkeypatch.setattr(local_launcher, "PROGRAM", "tests.training.slowly")
    monkeypatch.setenv("SLOWLY", "computing:2:0.03")
    settings = {"workers": 3, "min_hosts": 2, "restarts": 0, "steps": 40}
    trained = train(SOLVER, ARRAYS, **settings, strategy=Averaging(4), leave_behind=8.0)
    behind, (left,) = behind_in(trained), of_kind(trained, "left")
    assert (behind["worker"], left["worker"]) == (2, 2)
    assert behind["seconds"] > max(4 * 0.03, 8 * behind["median"])
    assert of_kind(trained, "lost") == []
    assert [event["hosts"] for event in of_kind(trained, "generation")] == [3, 2]
    assert trained.outcome.samples == 3 * 40 * small.BATCH


def test_one_that_computes_very_slowly_is_left_in_its_round(monkeypatch):
    """It sends heartbeats all the while; nothing of its round counts."""
    monkeypatch.setattr(local_launcher, "PROGRAM", "tests.training.slowly")
    monkeypatch.setenv("SLOWLY", "computing:0:30")
    settings = {"workers": 3, "min_hosts": 2, "restarts": 0, "steps": 40}
    trained = train(SOLVER, ARRAYS, **settings, strategy=Averaging(4), deadline=4, leave_behind=15)
    behind, (lost,) = behind_in(trained), of_kind(trained, "lost")
    assert (behind["worker"], lost["worker"]) == (0, 0)
    assert 15 * behind["median"] < behind["seconds"] < 25
    assert [event["hosts"] for event in of_kind(trained, "generation")] == [3, 2]
    assert trained.outcome.samples == 3 * 40 * small.BATCH
