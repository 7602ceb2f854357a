"""Stores that fail in the middle: the run goes on, and nothing half-written is a snapshot."""

import io
import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.report import History
from sparknet.training import progress
from sparknet.training.checkpoints import snapshot
from sparknet.training.checkpoints.store import Buffer, FolderStore
from sparknet.training.events import tell
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import Averaging
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.comm import VirtualComm, perform
from sparknet.training.workers.rounds import work
from tests.training import small

WORKERS, ROUNDS = 2, 3


class Fuse:
    """Counts what is asked of all workers' stores; what has the number ``at`` fails."""

    def __init__(self, at: int, times: int = 1) -> None:
        self.asked, self.failing = 0, range(at, at + times)

    def burns(self) -> bool:
        self.asked += 1
        return self.asked - 1 in self.failing


class Failing(FolderStore):
    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._fuse = fuse

    def _check(self, what: str) -> None:
        if self._fuse.burns():
            raise FileError(self.folder, f"the disk is gone while it would {what}")

    def begin(self, round: int) -> None:
        self._check("begin")
        super().begin(round)

    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        parts = list(parts)
        if self._fuse.burns():
            super().put(round, name, [bytes(part)[: len(part) // 2] for part in parts])
            raise FileError(self.folder, "the disk is gone while it would put")
        super().put(round, name, parts)

    def commit(self, round: int) -> None:
        self._check("commit")
        super().commit(round)

    def drop(self, round: int) -> None:
        self._check("drop")
        super().drop(round)

    def clean(self) -> None:
        self._check("clean")
        super().clean()


def train(folder, fuse, **further):
    """The weights and the events of a run of three rounds."""
    group = [small.learner(rank, WORKERS) for rank in range(WORKERS)]
    comms = VirtualComm.group(WORKERS, Cluster(step=1.0))
    events = []
    plan = RunPlan(
        steps=2 * ROUNDS, snapshot_every=1, keep=2, **{"snapshots_needed": False, **further}
    )

    def run(rank):
        hooks = Hooks(store=Failing(folder, fuse), on_event=None if rank else events.append)
        return work(group[rank], Averaging(2), comms[rank], plan, hooks)

    for one in perform(comms[0].stage, run):
        if isinstance(one, BaseException):
            raise one
    return small.weights(group[0]).copy(), events


def readable(folder: Path) -> list[int]:
    """The rounds that have a snapshot, each of which is whole."""
    store = FolderStore(folder)
    for round in store.rounds():
        saved = snapshot.Saved(store, round)
        assert [len(saved.worker(rank)[1]["weights"]) for rank in range(WORKERS)] == [32, 32]
    return list(store.rounds())


NEVER = 10**6


def test_a_store_that_fails_at_every_call(tmp_path):
    fuse = Fuse(NEVER)
    expected, events = train(tmp_path / "whole", fuse)
    assert readable(tmp_path / "whole") == [2, 3]
    assert "unsaved" not in {event["event"] for event in events}
    unsaved = 0
    for at in range(fuse.asked):
        folder = tmp_path / str(at)
        weights, events = train(folder, Fuse(at))
        assert np.array_equal(weights, expected)
        failed = [event for event in events if event["event"] == "unsaved"]
        saved = [event["round"] for event in events if event["event"] == "snapshot"]
        notes = [event["text"] for event in events if event["event"] == "note"]
        assert len(failed) + len(notes) == 1, at
        if failed:
            unsaved += 1
            assert "the disk is gone while it would" in failed[0]["error"]
            assert failed[0]["path"].endswith(f"round-{failed[0]['round']:08d}")
        else:
            assert notes[0].startswith("old snapshots stay for now")
        lost = {event["round"] for event in failed} - {ROUNDS}  # the end tries once more
        assert saved == [round for round in range(1, ROUNDS + 1) if round not in lost]
        assert set(saved[-2:]) <= set(readable(folder))
        assert events[-1]["snapshot"].endswith(f"round-{saved[-1]:08d}")
    assert unsaved >= 3 * (2 + 3)


def test_a_store_that_is_gone_for_good_costs_no_training(tmp_path):
    expected, _ = train(tmp_path / "whole", Fuse(NEVER))
    weights, events = train(tmp_path / "gone", Fuse(5, NEVER))
    assert np.array_equal(weights, expected)
    rounds = [event["round"] for event in events if event["event"] == "unsaved"]
    assert rounds == [1, 2, 3, 3]  # the end tries once more
    assert readable(tmp_path / "gone") == []
    assert events[-1]["event"] == "stop"
    assert events[-1]["snapshot"] is None


@pytest.mark.parametrize("at", range(5))
def test_a_run_that_needs_its_snapshots_ends(tmp_path, at):
    with pytest.raises(FileError, match=r"worker \d could not write: .* the disk is gone"):
        train(tmp_path, Fuse(at), snapshots_needed=True)


def test_a_failure_is_a_warning(caplog):
    event = {
        "event": "unsaved",
        "time": 0.0,
        "round": 3,
        "iteration": 30,
        "path": "s3a://b/round-00000003",
        "worker": 2,
        "error": "no space left",
    }
    said = "no snapshot in s3a://b/round-00000003: worker 2 could not write it: no space left"
    history = History()
    with caplog.at_level(logging.WARNING, "sparknet.training"):
        known: set[str] = set()
        for place in (event["path"], "s3a://b/round-00000004"):  # once, though each is another one
            tell(history, {**event, "path": place}, known)
    assert [record.message for record in caplog.records] == [said]
    shown = io.StringIO()
    bar = progress.Progress(shown, terminal=False)
    for _ in range(3):
        bar(event)
    assert shown.getvalue().count(said) == 1
    assert said in str(progress._line("unsaved", event))
