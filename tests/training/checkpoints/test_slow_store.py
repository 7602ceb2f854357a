"""Stores that are slow: the run waits for them and is the same, however long that is."""

import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet.comm.handshake import make_secret
from sparknet.comm.rpc import Link
from sparknet.comm.wire import HMAC
from sparknet.training.checkpoints.store import Buffer, FolderStore
from sparknet.training.driver.driver import Driver, DriverStore
from sparknet.training.driver.rendezvous import Presence
from sparknet.training.local_training import train
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import Averaging
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.comm import VirtualComm, perform
from sparknet.training.workers import local as local_launcher
from sparknet.training.workers.rounds import work
from tests.training import small
from tests.training.checkpoints.test_failing_store import WORKERS, readable
from tests.training.test_changing import ARRAYS, SOLVER, of_kind
from tests.training.test_training import nothing_is_left  # noqa: F401


class Slow(FolderStore):
    """It takes so much of a worker's simulated time to write a file."""

    def __init__(self, folder: Path, comm: VirtualComm, seconds: float) -> None:
        super().__init__(folder)
        self._comm, self._seconds = comm, seconds

    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        self._comm.spend(self._seconds)
        super().put(round, name, parts)


def simulated(folder, seconds):
    """The weights and events of a run of three rounds, where one worker's store is slow."""
    group = [small.learner(rank, WORKERS) for rank in range(WORKERS)]
    comms = VirtualComm.group(WORKERS, Cluster(step=1.0))
    events = []
    plan = RunPlan(steps=6, snapshot_every=1, keep=2)

    def run(rank):
        store = Slow(folder, comms[rank], seconds if rank else 0.0)
        hooks = Hooks(store=store, on_event=None if rank else events.append)
        return work(group[rank], Averaging(2), comms[rank], plan, hooks)

    for one in perform(comms[0].stage, run):
        if isinstance(one, BaseException):
            raise one
    return small.weights(group[0]).copy(), events


def test_a_slow_store_costs_its_time_and_nothing_else(tmp_path):
    expected, quick = simulated(tmp_path / "quick", 0.0)
    weights, events = simulated(tmp_path / "slow", 1000.0)
    np.testing.assert_array_equal(weights, expected)
    assert readable(tmp_path / "slow") == [2, 3]
    assert [one["event"] for one in events] == [one["event"] for one in quick]
    spent = [one["seconds"] for one in events if one["event"] == "snapshot"]
    usual = [one["seconds"] for one in quick if one["event"] == "snapshot"]
    assert np.subtract(spent, usual) == pytest.approx([1000.0] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"min_hosts": 2, "leave_behind": 20.0}], ids=str)
def test_a_store_slower_than_the_deadline(settings, tmp_path, monkeypatch):
    """Nobody is lost or left behind meanwhile: all send heartbeats, and nobody is in a round."""
    monkeypatch.setattr(local_launcher, "PROGRAM", "tests.training.slowly")
    monkeypatch.setenv("SLOWLY", "storing:1:1.5")
    settings |= {"workers": 2, "steps": 8, "strategy": Averaging(2), "deadline": 1.0}
    expected = train(SOLVER, ARRAYS, **settings)
    trained = train(SOLVER, ARRAYS, **settings, snapshots=tmp_path, snapshot_every=3)
    np.testing.assert_array_equal(
        np.asarray(trained.weights.flat), np.asarray(expected.weights.flat)
    )
    assert of_kind(trained, "lost", "behind", "failure", "unsaved") == []
    saved = of_kind(trained, "snapshot")
    assert [event["round"] for event in saved] == [3, 4]
    assert min(event["seconds"] for event in saved) > 1.5


class Waiting(FolderStore):
    """It writes when it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.may = threading.Event()

    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        assert self.may.wait(60)
        super().put(round, name, parts)


def test_the_drivers_store_may_take_longer_than_the_deadline(tmp_path):
    """The worker that waits for it sends no heartbeat meanwhile, and is not lost."""
    deadline, events = 0.4, list[Any]()
    store = Waiting(tmp_path)
    link = Link("", ("127.0.0.1", 0), make_secret(), HMAC, deadline)
    with Driver(link, memoryview(b""), store, events.append) as driver:
        link = driver.link
        with (
            closing(link.dial(0)) as line,
            Presence(line, "training", 1, "here", deadline) as presence,
        ):
            presence.meet()
            presence.go_on(dict, events.append)
            later = threading.Timer(5 * deadline, store.may.set)
            later.start()
            there = DriverStore(line)
            there.begin(1)
            there.put(1, "worker-0.state", iter([b"abc"]))
            there.commit(1)
            later.join()
            assert there.rounds() == [1]
            assert bytes(there.get(1, "worker-0.state")) == b"abc"
        assert (driver.progress.failures, events) == ([], [])
