"""Who is part of a run whose members change, as the driver sees it: with a clock of ours."""

from typing import Any

from sparknet.training.driver.membership import Elastic, Membership


class Line:
    def __init__(self, rank: int) -> None:
        self.rank = rank


class Meeting:
    """The driver's side of a run of two workers or more, at most four."""

    def __init__(self) -> None:
        self.now, self.generation = 0.0, 0
        self.events: list[dict[str, Any]] = []
        self.members = Membership(
            Elastic(4, 2, wait=10.0), self._begin, self.events.append, bool, lambda: self.now
        )

    def _begin(self) -> dict[str, Any]:
        self.generation += 1
        return {"attempt": self.generation}

    def call(self, line: Line, ready: bool = True, after: int = 0) -> dict[str, Any]:
        said = {"where": f"place {line.rank}", "said": line.rank, "ready": ready, "after": after}
        answer: dict[str, Any] = self.members.hear(line, {**said, "why": None})  # type: ignore[arg-type]
        return answer

    def begun(self, *ranks: int) -> list[Line]:
        """Those that are in the first generation."""
        lines = [Line(rank) for rank in ranks]
        for line in lines:
            self.call(line)
        self.now += 10
        for line in lines:
            assert self.call(line)["met"] is not None
            self.call(line, ready=False, after=1)
        return lines

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]


def test_those_that_are_enough_wait_for_more():
    meeting, lines = Meeting(), [Line(3), Line(1)]
    for now in (0.0, 9.9):
        meeting.now = now
        assert [meeting.call(line)["met"] for line in lines] == [None, None]
    meeting.now = 10.0
    meeting.call(lines[0])
    assert [meeting.call(line)["met"]["rank"] for line in lines] == [1, 0]
    assert meeting.events == [
        {
            "event": "generation",
            "time": meeting.events[0]["time"],
            "generation": 1,
            "workers": 2,
            "seconds": 10.0,
            "message": None,
        }
    ]


def test_the_second_task_for_a_seat_is_refused():
    meeting = Meeting()
    first = meeting.begun(0, 1)
    assert meeting.call(Line(1))["lost"] == (1, "place 1", "another process has its place")
    assert not meeting.members.has_newcomers()
    meeting.members.leave(first[1])  # type: ignore[arg-type]
    assert meeting.call(Line(1))["lost"] is None


def test_one_that_is_told_to_leave_is_no_loss():
    meeting = Meeting()
    stays, goes = meeting.begun(0, 1)
    members: Any = meeting.members
    assert not members.has_newcomers()
    members.send_away([1])
    assert members.has_newcomers()
    assert not members.leaves(stays, wish=False, now=True)
    assert members.leaves(goes, wish=False, now=True)
    members.leave(goes)
    assert meeting.kinds() == ["generation", "left"]
    assert meeting.events[1]["where"] == "place 1"


def test_one_that_is_told_to_leave_and_is_killed_in_its_round_is_a_loss():
    meeting = Meeting()
    _, goes = meeting.begun(0, 1)
    members: Any = meeting.members
    assert members.leaves(goes, wish=True, now=False)
    members.leave(goes)
    assert meeting.kinds() == ["generation", "lost"]


def test_the_last_one_stays_until_another_has_come():
    """It has the weights."""
    meeting = Meeting()
    lines = meeting.begun(0, 1)
    members: Any = meeting.members
    members.send_away([0, 1])
    assert not members.has_newcomers()
    assert not any(members.leaves(line, wish=True, now=True) for line in lines)
    meeting.call(Line(2))
    assert members.has_newcomers()


def test_who_waits_when_training_ends_hears_of_it() -> None:
    over, meeting = [False], Meeting()
    meeting.members._is_over = lambda: over[0]
    meeting.begun(0, 1)
    late = Line(2)
    assert meeting.call(late) == {"lost": None, "met": None}
    over[0] = True
    assert meeting.call(late) == {"lost": (2, "place 2", "training is over"), "met": None}
