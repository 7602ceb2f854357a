"""Snapshots: a run that was cut goes on bit for bit; damaged and foreign ones are refused."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.training.checkpoints import snapshot, store
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Averaging,
    DiLoCo,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)
from sparknet.training.workers.rounds import work
from tests.training import small

TEXT = 'lr_policy: "multistep" stepvalue: 9 stepvalue: 25 gamma: 0.5 weight_decay: 0.01'
MIDDLE = small.BATCH_NORM + small.DROPOUT

ALL: list[Strategy] = [
    AllReduce(steps=4),
    AllReduce(steps=4, codec="int8"),
    Averaging(steps=4, momentum="average", warmup=3),
    Averaging(steps=4, codec="int8"),
    BMUF(steps=4),
    DiLoCo(steps=4),
    DiLoCo(steps=12, fragments=3, overlap=2, codec="int8"),
    DynamicAveraging(threshold=0.2, check_every=4),
    ElasticAveraging(every=4),
    SlowMo(steps=4, beta=0.5),
]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run(folder, strategy, plan, resume=None, size=2):
    """Train; each worker's weights and history."""

    def one(rank, comm):
        learner = small.learner(rank, size, TEXT, middle=MIDDLE)
        seed, draws = learner.solver.net.random_state
        learner.solver.net.random_state = (seed + rank, draws)
        hooks = Hooks(store=FolderStore(folder), resume=resume)
        work(learner, strategy, comm, plan, hooks)
        return [small.weights(learner), *(np.array(history) for history in learner.histories)]

    return small.together(size, one)


@pytest.mark.parametrize("strategy", ALL, ids=repr)
def test_resume_goes_on_bit_for_bit(tmp_path, strategy):
    whole = run(tmp_path / "whole", strategy, RunPlan(steps=38))
    first = RunPlan(steps=18, snapshot_every=2)
    run(tmp_path / "cut", strategy, first)
    store = FolderStore(tmp_path / "cut")
    round = store.rounds()[-2]
    again = run(tmp_path / "cut", strategy, RunPlan(steps=38, snapshot_every=2), round)
    for mine, theirs in zip(again, whole, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert np.array_equal(one, other)


def test_only_the_newest_stay(tmp_path):
    run(tmp_path, Averaging(4), RunPlan(steps=40, snapshot_every=2, keep=3))
    assert names(tmp_path) == ["round-00000006", "round-00000008", "round-00000010"]
    assert names(tmp_path / "round-00000010") == [
        "manifest.json",
        "shared.state",
        "worker-0.state",
        "worker-1.state",
    ]


@pytest.fixture
def snapshot_folder(tmp_path):
    """The folder of a snapshot of round 2."""
    run(tmp_path, Averaging(4), RunPlan(steps=8, snapshot_every=2))
    return tmp_path / "round-00000002"


def resume(snapshot_folder: Path, strategy: Strategy | None = None, size: int = 2) -> None:
    run(snapshot_folder.parent, strategy or Averaging(4), RunPlan(steps=12), 2, size)


def test_a_truncated_file_is_refused(snapshot_folder):
    path = snapshot_folder / "worker-1.state"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileError, match=r"worker-1\.state: is cut short: \d+ bytes written"):
        resume(snapshot_folder)


@pytest.mark.parametrize("place", [0, 12, 100, -1])
def test_a_flipped_bit_is_refused(snapshot_folder, place):
    path = snapshot_folder / "worker-0.state"
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"worker-0\.state: is damaged"):
        resume(snapshot_folder)


@pytest.mark.parametrize("place", [0, 5, 60, -3])
def test_a_flipped_bit_in_the_manifest_is_refused(snapshot_folder, place):
    path = snapshot_folder / "manifest.json"
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"manifest\.json: "):
        resume(snapshot_folder)


def test_files_of_other_runs_are_refused(snapshot_folder):
    with pytest.raises(FileError, match="of another run: its strategy is"):
        resume(snapshot_folder, Averaging(5))
    (snapshot_folder / "manifest.json").write_text("[]")
    with pytest.raises(FileError, match="damaged, or no manifest"):
        resume(snapshot_folder)
    (snapshot_folder / "manifest.json").unlink()
    with pytest.raises(FileError, match=r"manifest\.json: No such file"):
        resume(snapshot_folder)


def test_without_a_damaged_one_the_one_before_serves(tmp_path):
    whole = run(tmp_path / "whole", Averaging(4), RunPlan(steps=20))
    folder = tmp_path / "cut"
    run(folder, Averaging(4), RunPlan(steps=12, snapshot_every=1, keep=2))
    damaged, before = folder / "round-00000003", folder / "round-00000002"
    (damaged / "worker-1.state").write_bytes(b"SNSTATE1")
    advice = f"delete {damaged} to resume from {before}"
    with pytest.raises(FileError, match=rf"worker-1\.state: is cut short: .*; {advice}$"):
        run(folder, Averaging(4), RunPlan(steps=20), 3)
    (damaged / "manifest.json").write_bytes(b"")
    with pytest.raises(FileError, match=rf"manifest\.json: is damaged, or .*; {advice}$"):
        snapshot.read_manifest(FolderStore(folder), 3)
    shutil.rmtree(damaged)
    assert snapshot.newest(FolderStore(folder)) == 2
    again = run(folder, Averaging(4), RunPlan(steps=20), 2)
    np.testing.assert_array_equal(again[0][0], whole[0][0])


SCORES = {4: 0.5, 8: 0.9, 12: 0.6, 16: 0.7, 20: 0.8, 24: 0.8}


def judged(folder, plan, resume=None):
    """Train with validation; each worker's outcome, and its weights."""
    learners = [small.learner(rank, 2, TEXT) for rank in range(2)]

    def one(rank, comm):
        hooks = Hooks(
            validate=lambda: (1, {"accuracy": SCORES[learners[rank].iter]}),
            store=FolderStore(folder),
            resume=resume,
        )
        return work(learners[rank], Averaging(4), comm, plan, hooks)

    return small.together(2, one), [small.weights(learner) for learner in learners]


def test_the_best_weights_outlive_an_interruption(tmp_path):
    """They are in the snapshots, though the run itself goes on from the last ones."""
    patient = {"validate_every": 1, "patience": 9, "goal": "max"}
    outcomes, whole = judged(tmp_path / "whole", RunPlan(steps=24, **patient))
    assert [outcome.best for outcome in outcomes] == [8, 8]
    judged(tmp_path / "cut", RunPlan(steps=12, snapshot_every=1, **patient))
    outcomes, again = judged(tmp_path / "cut", RunPlan(steps=24, **patient), 3)
    assert [(one.best, one.metrics) for one in outcomes] == [(8, {"accuracy": 0.9})] * 2
    np.testing.assert_array_equal(again, whole)


def test_patience_may_begin_and_end_with_a_resumption(tmp_path):
    patient = {"validate_every": 1, "patience": 9, "goal": "max"}
    judged(tmp_path, RunPlan(steps=12, snapshot_every=3, validate_every=1))
    outcomes, _ = judged(tmp_path, RunPlan(steps=20, snapshot_every=5, **patient), 3)
    assert [outcome.best for outcome in outcomes] == [None, None]  # the last of what is known
    outcomes, _ = judged(tmp_path, RunPlan(steps=24, **patient), 5)
    assert [outcome.best for outcome in outcomes] == [20, 20]
    outcomes, _ = judged(tmp_path, RunPlan(steps=24, validate_every=1), 5)
    assert [outcome.best for outcome in outcomes] == [None, None]


def test_nothing_changes_when_a_snapshot_is_refused(snapshot_folder):
    path = snapshot_folder / "worker-0.state"
    path.write_bytes(path.read_bytes() + b"\0")
    learner = small.learner(0, 2, TEXT, middle=MIDDLE)
    before = small.weights(learner)

    def one(rank, comm):
        hooks = Hooks(store=FolderStore(snapshot_folder.parent), resume=2)
        work(learner, Averaging(4), comm, RunPlan(steps=12), hooks)

    with pytest.raises(FileError):
        small.together(1, one)
    assert np.array_equal(small.weights(learner), before)
    assert learner.iter == 0


def test_the_manifest_says_what_it_is_of(snapshot_folder):
    manifest = json.loads((snapshot_folder / "manifest.json").read_text())
    assert manifest["run"]["workers"] == 2
    assert manifest["run"]["strategy"]["name"] == "averaging"
    assert [*manifest["files"]] == ["shared.state", "worker-0.state", "worker-1.state"]
    for name, entry in manifest["files"].items():
        assert (snapshot_folder / name).stat().st_size == entry["bytes"]
    assert snapshot.read_manifest(FolderStore(snapshot_folder.parent), 2)["round"] == 2


def test_drafts_are_cleaned(tmp_path):
    store = FolderStore(tmp_path)
    store.begin(3)
    store.put(3, "worker-0.state", [b"abc"])
    assert not store.rounds()
    store.clean()
    assert not names(tmp_path)
    store.drop(7)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(FileError, match="Not a directory"):
        FolderStore(blocked).begin(1)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"run": None}, "does not say what run it is of"),
        ({"run": [1]}, "does not say what run it is of"),
        ({"files": None}, "does not name the workers' files"),
        ({"files": [{"bytes": 3}]}, "does not name the workers' files"),
        ({"files": [7, 8]}, "does not name the workers' files"),
        ({"files": []}, "worker-0.state: is not there: the manifest names the files of 0"),
        ({"round": None}, "is that of round None"),
        ({"layers": [{"name": "ip"}]}, "has layers that do not fit its weights"),
        ({"layers": 3}, "has layers that do not fit its weights"),
    ],
)
def test_manifests_that_lack_something(snapshot_folder, changes, says):
    """Their digest fits: somebody else wrote them."""
    path = snapshot_folder / "manifest.json"
    body = {**json.loads(path.read_text()), **changes}
    body = {name: value for name, value in body.items() if value is not None and name != "digest"}
    path.write_bytes(snapshot._sealed(body))
    with pytest.raises(FileError, match=says):
        snapshot.model(FolderStore(snapshot_folder.parent), 2)


def test_a_manifest_without_a_seed(snapshot_folder):
    for run in ({}, {"seed": "1"}, {"seed": [1]}):
        resumed = snapshot.Resumed(FolderStore(snapshot_folder.parent), 2, run)
        with pytest.raises(FileError, match="does not say the seed of its run"):
            _ = resumed.seed


DROPPING = """
import os, shutil, signal, sys
from pathlib import Path
from sparknet.training.checkpoints.store import FolderStore

def cut(path, **_):
    if Path(path).exists():
        next(Path(path).iterdir()).unlink()
        os.kill(os.getpid(), signal.SIGKILL)

store = FolderStore(sys.argv[1])
shutil.rmtree = cut
if sys.argv[2] == "drop":
    store.drop(4)
else:
    store._draft(4).mkdir()
    store.commit(4)
"""


@pytest.mark.parametrize("how", ["drop", "commit"])
def test_a_snapshot_of_which_a_part_is_gone_has_no_name(tmp_path, how):
    """The process is killed while it removes the files of one, also to put another in its place."""
    store = FolderStore(tmp_path)
    for round in (4, 8):
        store.begin(round)
        for name in ("a", "b"):
            store.put(round, name, [b"x"])
        store.commit(round)
    done = subprocess.run([sys.executable, "-c", DROPPING, str(tmp_path), how], check=False)
    assert done.returncode == -signal.SIGKILL
    assert store.rounds() == [8]
    assert len(names(tmp_path / ".round-00000004.dropped")) == 1
    store.clean()
    assert names(tmp_path) == ["round-00000008"]
    store.drop(8)
    assert names(tmp_path) == []


def test_files_are_on_the_disk_before_the_snapshot_has_its_name(tmp_path, monkeypatch):
    seen: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(store, "_sync", lambda path: seen.append((path.name, names(tmp_path))))
    made = FolderStore(tmp_path)
    made.begin(3)
    [draft] = names(tmp_path)
    made.put(3, "weights", [b"1"])
    made.commit(3)
    [done] = names(tmp_path)
    assert draft != done
    assert seen == [(draft, [draft]), (tmp_path.name, [done])]


@pytest.mark.parametrize("own", [False, True])
def test_other_records_are_for_the_run_itself_alone(tmp_path, own):
    """A run that lost a worker deals its records anew, and goes on from what it saved."""

    def trained(plan, **hooks):
        learner = small.learner()
        made = Hooks(store=FolderStore(tmp_path), **hooks)
        [done] = small.together(1, lambda _, comm: work(learner, Averaging(4), comm, plan, made))
        return done.iteration

    trained(RunPlan(steps=4, snapshot_every=1), identity={"data": 5})
    [round] = FolderStore(tmp_path).rounds()
    if own:
        assert trained(RunPlan(steps=8), identity={"data": 6}, resume=round, own=True) == 8
    else:
        with pytest.raises(FileError, match="data"):
            trained(RunPlan(steps=8), identity={"data": 6}, resume=round)
