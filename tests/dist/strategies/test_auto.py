"""Auto: the number of steps follows from what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from sparknet.dist.plan import Hooks, Plan
from sparknet.dist.strategies import Auto
from sparknet.dist.strategies.auto import Tuned
from sparknet.dist.worker import work
from sparknet.native import NDArray
from tests.dist import small


def tuned(steps: list[float], syncs: list[float]) -> Tuned:
    return Tuned(center=NDArray.zeros((1,)), step_times=steps, sync_times=syncs)


@pytest.mark.parametrize(
    ("steps", "syncs", "ratio", "chosen"),
    [
        ([9.0, 0.01, 0.02], [9.0, 0.2, 0.1], 5.0, 50),
        ([9.0, 0.01, 0.02], [9.0, 0.2, 0.1], 1.0, 10),
        ([9.0, 1.0], [9.0, 0.001], 5.0, 1),
        ([9.0, 0.001], [9.0, 10.0], 5.0, 500),
    ],
)
def test_rounds_follow_from_the_times(
    steps: list[float], syncs: list[float], ratio: float, chosen: int
) -> None:
    def choose(rank: int, comm: Any) -> tuple[int, str]:
        state = tuned([time * (1 - rank / 2) for time in steps], syncs)  # the slowest counts
        note = Auto(ratio=ratio)._choose(comm, state)
        return state.steps, note

    for found, note in small.together(2, choose):
        assert found == chosen
        assert f"rounds have {chosen} steps" in note


def test_it_says_what_it_chose_and_does_so() -> None:
    learners = [small.learner(rank, 2) for rank in range(2)]
    events: list[Any] = []

    def run(rank: int, comm: Any) -> None:
        work(learners[rank], Auto(measured=3), comm, Plan(steps=90), Hooks(events.append))

    small.together(2, run)
    (note,) = [event for event in events if event["event"] == "note"]
    assert note["round"] == 3
    rounds = [event["steps"] for event in events if event["event"] == "round"]
    assert rounds[:3] == [1, 1, 1]
    assert sum(rounds) == 90
    assert f"rounds have {max(rounds[3:])} steps" in note["text"] or len(rounds) == 4
