"""Runs whose hosts are killed, in real processes: others carry their workers, to the same bits."""

import os
import signal
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from sparknet.errors import ListenerError, PeerLost
from sparknet.training.driver import crew
from sparknet.training.local_training import train
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Auto,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
)
from sparknet.training.virtual import simulate
from sparknet.training.workers import local as local_launcher
from tests.training import small
from tests.training.test_training import nothing_is_left  # noqa: F401

SOLVER = small.settings('lr_policy: "step" stepsize: 90 gamma: 0.5', middle=small.BATCH_NORM)
ARRAYS = dict(small.records().arrays)


class Killer:
    """A listener that kills workers, by their ranks, after rounds."""

    def __init__(self, after: Mapping[int, list[int]], how: int = signal.SIGKILL) -> None:
        self._after, self._how = dict(after), how
        self._processes: list[int] = []

    def __call__(self, event):
        if event["event"] == "workers":
            self._processes = [one["process"] for one in event["workers"]]
        for rank in (
            self._after.pop(event.get("round", -1), []) if event["event"] == "round" else ()
        ):
            os.kill(self._processes[rank], self._how)


def of_kind(trained, *kinds):
    return [event for event in trained.history if event["event"] in kinds]


def same(trained, strategy, **settings):
    """The weights are those of a run in virtual time, which nothing happened to."""
    undisturbed = simulate(SOLVER, ARRAYS, strategy=strategy, threads=1, **settings)
    np.testing.assert_array_equal(trained.weights.flat, undisturbed.weights.flat)
    assert trained.outcome.samples == undisturbed.outcome.samples


@pytest.mark.parametrize(
    "strategy",
    [
        Averaging(4, momentum="average"),
        AllReduce(4, codec="int8"),
        DiLoCo(8, fragments=2, overlap=3, codec="int8"),
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in (
                Averaging(4, codec="int8"),
                DynamicAveraging(0.01, 4),
                SlowMo(4),
                DiLoCo(4),
                BMUF(4),
                ElasticAveraging(every=4),
            )
        ),
    ],
    ids=lambda one: one.name,
)
def test_others_carry_the_workers_of_lost_hosts(strategy):
    """Without a snapshot; the first host is lost as well, whose worker the driver hears."""
    killer, run = Killer({2: [2], 5: [0]}), {"workers": 3, "steps": 120}
    trained = train(
        *(SOLVER, ARRAYS),
        **run,
        hosts=3,
        min_hosts=1,
        restarts=0,
        threads=1,
        strategy=strategy,
        on_event=killer,
    )
    assert [event["hosts"] for event in of_kind(trained, "generation")] == [3, 2, 1]
    lost = {event["worker"] for event in of_kind(trained, "lost")}
    assert {0, 2} <= lost
    assert len(of_kind(trained, "start")) == 1
    assert {len(event["workers"]) for event in of_kind(trained, "round")} == {3}
    same(trained, strategy, **run)


@pytest.mark.parametrize("strategy", [Downpour(4), Auto()], ids=lambda one: one.name)
def test_strategies_that_depend_on_times_go_on(strategy):
    """To other weights, but to the end."""
    killer, run = Killer({2: [1]}), {"workers": 2, "steps": 60, "min_hosts": 1}
    trained = train(SOLVER, ARRAYS, **run, restarts=0, strategy=strategy, on_event=killer)
    assert trained.outcome.iteration == 60


class Enough(Exception):
    """What was to be seen was seen."""


def test_another_comes_for_one_that_is_lost():
    """It is there for the rounds that follow, whenever that is."""
    killer, events = Killer({3: [1]}), list[dict[str, Any]]()

    def hear(event):
        events.append(event)
        killer(event)
        if event["event"] == "round" and sizes() == [3, 2, 3]:
            raise Enough

    def sizes() -> list[int]:
        return [event["hosts"] for event in events if event["event"] == "generation"]

    settings = {"workers": 3, "min_hosts": 2, "steps": 1_000_000, "seconds": 12.0}
    with pytest.raises(ListenerError) as caught:
        train(SOLVER, ARRAYS, **settings, restarts=1, on_event=hear)
    assert isinstance(caught.value.__cause__, Enough)
    said = [event for event in events if event["event"] in {"lost", "joined", "generation"}]
    assert [event["event"] for event in said] == [
        *("generation", "lost", "joined", "generation"),
        *("joined", "generation"),
    ]
    assert {event["workers"] for event in said if "workers" in event} == {3}


def test_all_are_lost_at_once(tmp_path):
    """Those that come for them go on from the newest snapshot."""
    killer, many = Killer({6: [0, 1]}), 400
    settings = {"workers": 2, "min_hosts": 2, "restarts": 2, "steps": many}
    settings |= {"snapshots": tmp_path, "snapshot_every": 2, "strategy": Averaging(20)}
    trained = train(SOLVER, ARRAYS, **settings, threads=1, on_event=killer)
    assert sorted(event["worker"] for event in of_kind(trained, "lost")) == [0, 1]
    first, second = of_kind(trained, "start")
    assert str(second["resumed"]).startswith(first["run"])
    assert second["round"] >= 4
    same(trained, Averaging(20), workers=2, steps=many)


def test_the_only_host_is_lost():
    """Without a snapshot: the run begins again, and two hosts end it."""
    killer, run = Killer({4: [1]}), {"workers": 3, "steps": 120}
    hosts = {"hosts": 1, "min_hosts": 1, "restarts": 1}
    trained = train(SOLVER, ARRAYS, **run, **hosts, threads=1, on_event=killer)
    assert len(of_kind(trained, "start")) == 2
    same(trained, "averaging", **run)


def test_too_few_are_an_error():
    killer = Killer({2: [1]})
    settings = {"workers": 2, "min_hosts": 2, "restarts": 0, "steps": 100_000}
    with pytest.raises(PeerLost, match=r"worker 1 on .* is lost: (its )?process"):
        train(SOLVER, ARRAYS, **settings, on_event=killer)


@pytest.mark.parametrize("place", ["sending:2:40", "computing:0:14", "receiving:1:30"])
def test_killed_in_the_middle(place, monkeypatch):
    monkeypatch.setattr(local_launcher, "PROGRAM", "tests.training.dying")
    monkeypatch.setenv("DYING", place)
    settings = {"workers": 3, "min_hosts": 2, "restarts": 0, "steps": 40}
    trained = train(SOLVER, ARRAYS, **settings, threads=1, strategy=Averaging(4))
    assert [event["hosts"] for event in of_kind(trained, "generation")] == [3, 2]
    same(trained, Averaging(4), workers=3, steps=40)


def test_a_silent_worker_is_left_behind():
    """It is stopped; the driver gives it up after the deadline, and nothing of it is left."""
    events = list[dict[str, Any]]()
    killer = Killer({3: [1]}, signal.SIGSTOP)

    def hear(event):
        events.append(event)
        killer(event)

    settings = {"workers": 3, "min_hosts": 2, "restarts": 0, "steps": 400}
    trained = train(SOLVER, ARRAYS, **settings, deadline=1.0, on_event=hear)
    lost = of_kind(trained, "lost")
    assert [(one["worker"], one["message"]) for one in lost] == [(1, "no heartbeat for 1 s")]
    assert [event["hosts"] for event in of_kind(trained, "generation")] == [3, 2]
    times = [one["time"] for one in events if one["event"] == "round"]
    assert max(np.diff(times)) < 5


def test_a_stopped_worker_that_goes_on_is_refused():
    """Also where nobody ends it: its line to the driver is closed, and its generation over."""
    killer, processes = Killer({3: [1]}, signal.SIGSTOP), list[int]()

    def hear(event):
        if event["event"] == "workers" and not processes:
            processes.extend(one["process"] for one in event["workers"])
        killer(event)
        if event["event"] == "generation" and event["generation"] == 2:
            os.kill(processes[1], signal.SIGCONT)

    settings = {"workers": 3, "min_hosts": 2, "restarts": 0, "steps": 400}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew.Crew, "keep_up", lambda *_: True)
        trained = train(SOLVER, ARRAYS, **settings, deadline=1.0, on_event=hear)
    assert [event["hosts"] for event in of_kind(trained, "generation")] == [3, 2]
    assert trained.outcome.samples == 3 * 400 * small.BATCH


def test_a_run_begins_with_fewer():
    """One never comes: the others wait for as long as is said, and carry its worker."""

    def kill(host: local_launcher.ProcessHost) -> None:
        if host.ranks == [1]:
            host.process.kill()

    settings = {"workers": 3, "min_hosts": 2, "restarts": 0, "steps": 40}
    with small.on_start(kill):
        trained = train(SOLVER, ARRAYS, **settings, start_wait=0.5)
    (begun,) = of_kind(trained, "generation")
    assert begun["hosts"] == 2
    assert begun["seconds"] >= 0.5
    assert trained.outcome.samples == 3 * 40 * small.BATCH
