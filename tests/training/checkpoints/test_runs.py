"""Runs that share a path for snapshots: none is lost, mixed in or taken without a word."""

import logging
import os
import shutil
import signal
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError, PeerLost
from sparknet.loaders.blocks import Blocks, write_blocks
from sparknet.loaders.records import ArrayRecords
from sparknet.net import Net
from sparknet.training.checkpoints.runs import FolderRuns, ResumeWarning
from sparknet.training.local_training import train
from sparknet.training.strategies import Averaging, DynamicAveraging, ElasticAveraging, Strategy
from sparknet.training.workers.shared_data import as_records, write_shared
from sparknet.weights import WeightCollection
from tests import fork_server
from tests.training import small

SOLVER = small.settings()
YESTERDAY = dict(small.records().arrays)
TODAY = {name: values[::-1].copy() for name, values in small.records(80).arrays.items()}
EVERY = {"strategy": Averaging(4), "snapshot_every": 1}


def flat(trained):
    return np.array(trained.weights.flat)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def start(trained):
    return next(event for event in trained.history if event["event"] == "start")


def test_the_second_day(tmp_path):
    """Train, score; from yesterday's model on other data with other workers; a kill; resume."""
    first = train(SOLVER, YESTERDAY, workers=1, steps=40, snapshots=tmp_path, **EVERY)
    kept = contents(tmp_path)
    scored = first.net.forward(small.records(4).arrays, outputs=["y"])["y"]
    whole = train(first.net, TODAY, workers=2, steps=24, strategy=Averaging(4))

    def kill(event):
        if event["event"] == "snapshot" and event["round"] == 3:
            os.kill(fork_server.PIDS[-1], signal.SIGKILL)

    today = {"workers": 2, "steps": 24, "snapshots": tmp_path, **EVERY}
    with pytest.raises(PeerLost, match=r"SIGKILL; resume from .*/run-.*/round-0+3") as lost:
        train(first.net, TODAY, on_event=kill, **today)
    resumed = train(first.net, TODAY, resume=True, **today)
    assert start(resumed)["resumed"] in str(lost.value)
    assert start(resumed)["iteration"] == 12
    np.testing.assert_array_equal(flat(resumed), flat(whole))
    assert {path: data for path, data in contents(tmp_path).items() if path in kept} == kept
    for one in (first, resumed):
        assert Path(str(one.outcome.snapshot), "manifest.json").is_file()
    assert Path(first.outcome.snapshot).parent != Path(resumed.outcome.snapshot).parent
    again = first.net.forward(small.records(4).arrays, outputs=["y"])["y"]
    np.testing.assert_array_equal(again, scored)


def test_nobody_else_may_read_them(tmp_path):
    """Of the paths that the run made; the user's own folder keeps its mode."""
    open_to_all, own = 0o755, tmp_path / "deep" / "snapshots"
    before = os.umask(0o022)
    try:
        train(SOLVER, YESTERDAY, workers=2, steps=8, snapshots=own, **EVERY)
        tmp_path.chmod(open_to_all)
        train(SOLVER, YESTERDAY, workers=2, steps=4, snapshots=tmp_path, **EVERY)
    finally:
        os.umask(before)
    made = [own, *own.rglob("*"), *tmp_path.glob("run-*/**/*")]
    modes = {path.is_dir(): set[int]() for path in made}
    for path in made:
        modes[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))
    assert modes == {True: {0o700}, False: {0o600}}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == open_to_all


def test_records_for_the_workers_are_private(tmp_path):
    before = os.umask(0o022)
    try:
        array = write_shared(as_records(YESTERDAY, Net(SOLVER)), tmp_path / "array")
        write_blocks(tmp_path / "own.blocks", small.records())
        reader = write_shared(Blocks(tmp_path / "own.blocks"), tmp_path / "reader")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(Path(path).stat().st_mode) for path in (array, reader)]
    assert modes == [0o600, 0o600]
    assert stat.S_IMODE((tmp_path / "own.blocks").stat().st_mode) == 0o644


def test_a_shorter_run_prunes_nothing_of_a_longer_one(tmp_path):
    """Its own rounds have lower numbers: they used to be removed as the oldest."""
    long = train(SOLVER, YESTERDAY, workers=1, steps=40, snapshots=tmp_path, keep=2, **EVERY)
    before = contents(tmp_path)
    short = train(SOLVER, YESTERDAY, workers=1, steps=12, snapshots=tmp_path, keep=2, **EVERY)
    rounds = {path.name: sorted(one.name for one in path.iterdir()) for path in tmp_path.iterdir()}
    assert sorted(rounds.values()) == [
        ["round-00000002", "round-00000003"],
        ["round-00000009", "round-00000010"],
    ]
    assert before.items() <= contents(tmp_path).items()
    assert str(short.outcome.snapshot).endswith("round-00000003")
    again = {"workers": 1, "resume": True, **EVERY}
    resumed = train(SOLVER, YESTERDAY, steps=16, snapshots=tmp_path, **again)
    assert start(resumed)["resumed"] == short.outcome.snapshot
    assert resumed.outcome.iteration == 16
    of_the_first = Path(str(long.outcome.snapshot)).parent  # a run's own folder names that run
    resumed = train(SOLVER, YESTERDAY, steps=44, snapshots=of_the_first, **again)
    assert start(resumed)["resumed"] == long.outcome.snapshot


def test_snapshots_of_an_earlier_version_lie_at_the_path_itself(tmp_path):
    whole = train(SOLVER, YESTERDAY, workers=2, steps=24, strategy=Averaging(4))
    cut = train(SOLVER, YESTERDAY, workers=2, steps=12, snapshots=tmp_path, **EVERY)
    run = Path(str(cut.outcome.snapshot)).parent
    for path in run.iterdir():
        shutil.move(path, tmp_path / path.name)
    run.rmdir()
    settings = {"workers": 2, "steps": 24, "snapshots": tmp_path, **EVERY}
    resumed = train(SOLVER, YESTERDAY, resume=True, **settings)
    assert start(resumed)["resumed"] == str(tmp_path / "round-00000003")
    np.testing.assert_array_equal(flat(resumed), flat(whole))
    assert resumed.outcome.snapshot == str(tmp_path / "round-00000006")
    fresh = train(SOLVER, YESTERDAY, **settings)
    assert start(fresh)["resumed"] is None
    assert (tmp_path / "round-00000006").is_dir()
    assert Path(str(fresh.outcome.snapshot)).parent.parent == tmp_path


@pytest.mark.parametrize(
    ("solver", "data", "said"),
    [
        (SOLVER, {**YESTERDAY, "x": YESTERDAY["x"] + 1}, "its data has records that are not"),
        (SOLVER, TODAY, "its records is 96, not 80"),
        (small.settings("base_lr: 0.01"), YESTERDAY, "its solver's base_lr is 0.05, not 0.01"),
        (small.settings('type: "Adam"'), YESTERDAY, "its solver's type is 'SGD', not 'Adam'"),
        (small.settings(middle=small.DROPOUT), YESTERDAY, "its net has layers that are not"),
    ],
)
def test_other_data_and_other_settings_are_refused(tmp_path, solver, data, said):
    train(SOLVER, YESTERDAY, workers=1, steps=8, snapshots=tmp_path, **EVERY)
    before = contents(tmp_path)
    with pytest.raises(FileError, match=f"round-00000002: is of another run: {said}"):
        train(solver, data, workers=1, steps=20, snapshots=tmp_path, resume=True, **EVERY)
    assert contents(tmp_path) == before


def test_what_does_not_change_training_may_change(tmp_path):
    train(SOLVER, YESTERDAY, workers=1, steps=8, snapshots=tmp_path, **EVERY)
    more = small.settings('max_iter: 16 display: 5 snapshot_prefix: "elsewhere"')
    resumed = train(more, YESTERDAY, workers=1, snapshots=tmp_path, resume=True, **EVERY)
    assert resumed.outcome.iteration == 16


def test_a_new_run_is_the_newest_whatever_the_clock_says(tmp_path):
    runs = FolderRuns(tmp_path)
    (tmp_path / "run-29991231T235959.999999Z-00ff").mkdir()
    (tmp_path / "running").mkdir()
    made = runs.begin()
    made.begin(1)
    made.commit(1)
    assert runs.names()[-1] == Path(made.place).name > "run-2999"
    newest = runs.newest()
    assert newest is not None
    assert newest.place == made.place


STRATEGIES: list[Strategy] = [Averaging(4), DynamicAveraging(9.0, 4), ElasticAveraging(every=4)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_snapshot_begins_another_training(tmp_path, strategy):
    """Its weights are those that training gave, whatever the workers had at that time."""
    settings = {"workers": 2, "strategy": strategy, "snapshots": tmp_path, "snapshot_every": 2}
    trained = train(SOLVER, YESTERDAY, steps=24, **settings)
    kept = Path(str(trained.outcome.snapshot))
    for path in (tmp_path, kept.parent, kept):
        begun = train(SOLVER, YESTERDAY, workers=1, steps=0, weights=path)
        np.testing.assert_allclose(flat(begun), flat(trained), rtol=1e-6)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(FileError, match="nothing: holds no snapshot"):
        train(SOLVER, YESTERDAY, workers=1, steps=1, weights=tmp_path / "nothing")
    with pytest.raises(FileError, match="nowhere"):
        Net(SOLVER, weights=tmp_path / "nowhere")


def test_with_patience_the_best_weights_are_the_snapshots(tmp_path):
    held = {"x": YESTERDAY["x"][:8], "t": -YESTERDAY["t"][:8]}  # the more it learns, the worse
    trained = train(
        SOLVER,
        ArrayRecords(**YESTERDAY),
        workers=1,
        steps=40,
        validation=held,
        validate_every=1,
        patience=3,
        snapshots=tmp_path,
        **EVERY,
    )
    assert trained.outcome.best is not None
    begun = train(SOLVER, YESTERDAY, workers=1, steps=0, weights=tmp_path)
    np.testing.assert_array_equal(flat(begun), flat(trained))


def test_the_log_says_which_run_goes_on(tmp_path, caplog):
    cut = train(SOLVER, YESTERDAY, workers=1, steps=8, snapshots=tmp_path, **EVERY)
    with caplog.at_level(logging.INFO, "sparknet"):
        train(SOLVER, YESTERDAY, workers=1, steps=12, snapshots=tmp_path, resume=True, **EVERY)
    run = Path(str(cut.outcome.snapshot)).parent
    assert f"resuming {run} from round-00000002, iteration 8" in caplog.messages


def test_the_verb_writes_a_snapshot_as_a_caffemodel(tmp_path, capsys):
    from sparknet.cli import main

    trained = train(SOLVER, YESTERDAY, workers=2, steps=8, snapshots=tmp_path / "s", **EVERY)
    out = tmp_path / "net.caffemodel"
    assert main(["convert", "snapshot", str(tmp_path / "s"), str(out)]) == 0
    assert capsys.readouterr().err == f"{out}: the weights of {trained.outcome.snapshot}\n"
    assert WeightCollection.load(out).allclose(trained.weights, rtol=0, atol=0)
    np.testing.assert_array_equal(Net(SOLVER, out).get_weights().flat, flat(trained))


def test_a_run_that_finds_nothing_to_resume_says_so(tmp_path):
    settings = {"steps": 12, "snapshots": tmp_path, "resume": True, **EVERY}
    with pytest.warns(ResumeWarning, match=f"no snapshot in {tmp_path}: the run starts anew"):
        train(SOLVER, YESTERDAY, workers=1, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResumeWarning)
        train(SOLVER, YESTERDAY, workers=1, **{**settings, "steps": 24})
