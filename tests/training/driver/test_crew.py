"""A crew of hosts that are none: whose place is taken again, and when that ends the run."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from sparknet.errors import DataError, PeerLost
from sparknet.training.driver import crew
from sparknet.training.driver.crew import Crew, WorkerHost
from sparknet.training.history import History


class Host(WorkerHost):
    has_ended = False

    def __init__(self, rank: int, when_ended: Callable[[], None]) -> None:
        self.ranks, self.when_ended, self.fault = [rank], when_ended, None

    def start(self) -> None: ...

    def cancel(self) -> None:
        self.has_ended = True

    def close(self) -> None: ...

    def failure(self, reports):
        return self.fault or PeerLost(self.ranks[0], "here", "it ended")


class Members:
    """Three workers, of which two are enough; as many are present as are said."""

    def __init__(self) -> None:
        self.lost_hosts: list[int] = []
        self.lacks, self.loss = False, None

    def leave_behind(self) -> None: ...

    def departures(self) -> list[int]:
        losses, self.lost_hosts = self.lost_hosts, []
        return losses


@pytest.fixture
def members():
    return Members()


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(crew, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def crew_of(members, restarts):
    driver = SimpleNamespace(
        members=members, deadline=5.0, progress=SimpleNamespace(outcome=None, starts=1),
        has_called=lambda rank: rank < 2, present=3,
    )  # fmt: skip
    history = History()
    return Crew(driver, history, Host, 3, 2, restarts), history


def test_a_place_is_taken_again_after_a_pause_that_grows(members, clock):
    workers, _ = crew_of(members, 2)
    workers.__enter__()
    for pause in (1.0, 2.0):
        workers.hosts[0].cancel()
        workers.keep_up(members)
        assert (len(workers.hosts), workers.coming) == (2, 3)
        clock.now += pause - 0.1
        workers.keep_up(members)
        assert len(workers.hosts) == 2
        clock.now += 0.2
        workers.keep_up(members)
        assert len(workers.hosts) == 3
    workers.hosts[0].cancel()
    clock.now += 60
    assert workers.keep_up(members)
    assert (len(workers.hosts), workers.coming) == (2, 2)  # no more are replaced


def test_a_late_word_of_a_loss_does_not_end_who_came_for_it(members, clock):
    workers, _ = crew_of(members, 5)
    workers.__enter__()
    members.lost_hosts = [0]  # silent, it has not ended
    first = workers.hosts[0]
    workers.keep_up(members)
    assert first.has_ended
    clock.now += 1.1
    workers.keep_up(members)
    members.lost_hosts = [0]
    second = workers.hosts[0]
    assert second.ranks == [3]
    workers.keep_up(members)
    assert second is not first
    assert not second.has_ended


def test_too_few_end_the_run(members, clock):
    workers, _ = crew_of(members, 0)
    workers.__enter__()
    members.lacks, members.lost = True, PeerLost(1, "here", "it ended")
    workers.keep_up(members)  # those that have started may come yet
    for host in workers.hosts[:2]:
        host.cancel()
    with pytest.raises(PeerLost, match="worker 1 on here is lost"):
        workers.keep_up(members)


def test_a_host_whose_worker_never_calls_has_no_records(members, clock):
    workers, _ = crew_of(members, 0)
    workers.__enter__()
    host = workers.hosts[2]
    host.failure = lambda reports: None
    host.cancel()
    with pytest.raises(DataError, match="the training data has no records"):
        workers.keep_up(members)


def test_a_run_that_never_gets_further_ends(members, clock):
    workers, history = crew_of(members, 0)
    workers.driver.progress.starts = 12
    workers.check_progress()
    history({"event": "round", "time": 0.0, "round": 2})
    workers.driver.progress.starts = 13
    workers.check_progress()
    history({"event": "round", "time": 0.0, "round": 1})
    workers.driver.progress.starts = 25
    with pytest.raises(Exception, match="lost 12 times in a row, and no round was new"):
        workers.check_progress()
