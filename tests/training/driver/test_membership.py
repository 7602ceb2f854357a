"""Which hosts a run has, and whom they carry, as the driver sees it: with a clock of ours."""

from typing import Any

import pytest

from sparknet.training.driver.membership import Elastic, Membership
from sparknet.training.driver.placement import shares


class Line:
    def __init__(self, rank: int) -> None:
        self.rank = rank


class Meeting:
    """The driver's side of a run of four workers on two hosts or more, at most three."""

    def __init__(self, workers=4, most=3, least=2, **more):
        self.now, self.generation = 0.0, 0
        self.events = []
        self.over = False
        elastic = Elastic(workers, most, least, wait=10.0, **more)
        self.members = Membership(
            elastic, self._begin, self.events.append, lambda: self.over, lambda: self.now
        )

    def _begin(self):
        self.generation += 1
        return {"attempt": self.generation}

    def carry(self, line, leaves=False):
        """The workers that a host carries, who does not wait for news."""
        before = self.members._of(line) if line in self.members._hosts else [-1]
        known = [*before, -1]
        answer = self.members.carry(line, line.rank, f"place {line.rank}", leaves, known)
        workers: list[int] = [-1] if answer["over"] else answer["workers"]
        return workers

    def call(self, line, host, ready=True, after=0):
        said = {"where": f"place {host}", "host": host, "said": line.rank, "ready": ready}
        return self.members.hear(line, {**said, "after": after, "why": None})

    def meet(self, hosts, lines):
        """All workers begin a generation: new lines for those without; returns what they hear."""
        after, met = self.generation, dict[str, Any]()
        places = {worker: host.rank for host in hosts for worker in self.carry(host)}
        for worker in sorted(places):
            lines.setdefault(worker, Line(worker))
        for worker, line in lines.items():
            self.call(line, places[worker], after=after)
        for worker, line in lines.items():
            met = self.call(line, places[worker], after=after)["met"]
            self.call(line, places[worker], ready=False, after=self.generation)
        return met

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]


def begun():
    """Two hosts whose workers have begun the first generation."""
    meeting, hosts, lines = Meeting(), [Line(0), Line(1)], dict[int, Any]()
    for host in hosts:
        assert meeting.carry(host) == []
    meeting.now = 10.0
    assert [meeting.carry(host) for host in hosts] == [[0, 1], [2, 3]]
    assert meeting.meet(hosts, lines)["hosts"] == [0, 0, 1, 1]
    return meeting, hosts, lines


@pytest.mark.parametrize(
    ("carried", "expected"),
    [
        ({5: (), 7: ()}, {5: {0, 1, 2}, 7: {3, 4}}),
        ({5: {0, 1, 2}, 7: {3, 4}}, {5: {0, 1, 2}, 7: {3, 4}}),
        ({5: {0, 1}, 7: {2, 3, 4}}, {5: {0, 1}, 7: {2, 3, 4}}),
        ({5: {0, 1, 2}, 9: ()}, {5: {0, 1, 2}, 9: {3, 4}}),
        ({5: {0, 1, 2}, 7: {3, 4}, 9: ()}, {5: {0, 1}, 7: {3, 4}, 9: {2}}),
    ],
)
def test_few_workers_move(carried, expected):
    assert shares(5, carried) == expected


def test_hosts_that_are_enough_wait_for_more():
    meeting, _, _ = begun()
    assert meeting.kinds() == ["generation"]
    figures = {"generation": 1, "workers": 4, "hosts": 2, "seconds": 10.0, "message": None}
    assert meeting.events[0].items() >= figures.items()


def test_others_carry_the_workers_of_a_lost_host():
    meeting, hosts, lines = begun()
    third = Line(2)
    assert meeting.carry(third) == []
    for line in (lines.pop(2), lines.pop(3), hosts.pop()):
        meeting.members.leave(line)
    assert meeting.members.departures() == [1]
    assert meeting.carry(third) == [2, 3]
    assert meeting.meet([hosts[0], third], lines)["hosts"] == [0, 0, 2, 2]
    kinds = ["generation", "lost", "lost", "joined", "joined", "generation"]
    assert meeting.kinds() == kinds
    assert [one["worker"] for one in meeting.events if one["event"] == "lost"] == [2, 3]


def test_a_newcomer_takes_workers_over_after_a_round():
    meeting, hosts, lines = begun()
    third = Line(2)
    assert meeting.carry(third) == []
    assert meeting.members.has_newcomers()
    assert meeting.call(lines[0], 0, after=1)["met"] is None
    assert [meeting.carry(one) for one in (*hosts, third)] == [[0, 1], [2], [3]]
    assert meeting.call(lines.pop(3), 1, after=1)["met"] == {"moved": True}
    assert meeting.meet([*hosts, third], lines)["hosts"] == [0, 0, 1, 2]
    assert meeting.kinds() == ["generation", "joined", "generation"]


def test_a_second_line_of_a_host_is_refused():
    meeting, hosts, _ = begun()
    assert meeting.carry(Line(1)) == [-1]
    assert meeting.carry(hosts[1]) == [2, 3]


def test_a_host_that_is_told_to_leave_is_no_loss():
    meeting, hosts, lines = begun()
    third = Line(2)
    meeting.carry(third)
    assert meeting.carry(hosts[0], leaves=True) == [0, 1]
    assert meeting.members.has_newcomers()
    meeting.call(lines[2], 1, after=1)
    assert meeting.carry(hosts[0]) == [-1]
    meeting.members.leave(hosts.pop(0))
    del lines[0], lines[1]
    assert meeting.meet([*hosts, third], lines)["hosts"] == [2, 2, 1, 1]
    assert [one["worker"] for one in meeting.events if one["event"] == "left"] == [0, 1]
    assert "lost" not in meeting.kinds()
    assert meeting.members.departures() == []


def test_the_only_host_hands_over_in_two_steps():
    """It has the state of all workers: so it keeps a half until another one has the other half."""
    meeting = Meeting(workers=2, most=1, least=1)
    first, second, lines = Line(0), Line(1), dict[int, Any]()
    assert meeting.carry(first) == [0, 1]
    meeting.meet([first], lines)
    meeting.members.send_away([0])
    assert not meeting.members.has_newcomers()
    meeting.carry(second)
    assert meeting.members.has_newcomers()
    meeting.call(lines[0], 0, after=1)
    assert [meeting.carry(one) for one in (first, second)] == [[0], [1]]
    del lines[1]
    meeting.meet([first, second], lines)
    assert meeting.members.has_newcomers()
    meeting.call(lines[1], 1, after=2)
    assert meeting.carry(second) == [0, 1]
    assert meeting.carry(first) == [-1]


def test_hosts_hear_that_training_is_over():
    meeting, hosts, _ = begun()
    late = Line(0)
    meeting.over = True
    assert meeting.carry(hosts[0]) == [-1]
    assert meeting.carry(Line(2)) == [-1]
    assert meeting.call(late, 0) == {"lost": (0, "place 0", "training is over"), "met": None}
