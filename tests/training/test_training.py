"""train: worker processes of this machine, and all that may happen to them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sparknet.errors import (
    DataError,
    FileError,
    ListenerError,
    PeerLost,
    SettingError,
    WorkerError,
)
from sparknet.loaders.batches import Batches
from sparknet.loaders.blocks import Blocks, write_blocks
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords, Chain
from sparknet.native import threads
from sparknet.net import Net
from sparknet.proto import parse_net, write_text
from sparknet.training.local_training import train
from sparknet.training.strategies import AllReduce, Averaging, DynamicAveraging
from sparknet.training.workers import local as local_launcher
from tests.goldens import ROOT
from tests.training import small

TEXT = 'weight_decay: 0.01 lr_policy: "step" stepsize: 9 gamma: 0.5'
MIDDLE = small.BATCH_NORM + small.DROPOUT
SOLVER = small.settings(TEXT, middle=MIDDLE)
ARRAYS = dict(small.records().arrays)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However a test ends, no worker process and no file of a run outlives it."""
    started: list[local_launcher.ProcessHost] = []
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with small.on_start(started.append):
        yield
    assert all(member.process.returncode is not None for member in started)
    assert not list(temporary.iterdir())


def begun(trained):
    """What was said when the workers had met."""
    return next(event for event in trained.history if event["event"] == "start")


def weights(trained):
    return np.array(trained.weights.flat)


@pytest.mark.parametrize("strategy", ["averaging", "allreduce", "slowmo"])
def test_one_worker_is_plain_training(strategy):
    plain = Net(SOLVER)
    plain.set_training_data(Batches(small.records(), small.BATCH, Order(small.RECORDS)))
    plain.train(23)
    # PyTorch's sums depend on the number of threads in their last bits, the native engine's do not.
    same = threads() if plain.device else None
    trained = train(SOLVER, ARRAYS, workers=1, strategy=strategy, steps=23, threads=same)
    assert np.array_equal(weights(trained), np.array(plain.get_weights().flat))
    assert np.array_equal(weights(trained), np.array(trained.net.get_weights().flat))


DATA = """
name: "data" layer { name: "data" type: "Data" top: "data" top: "label"
  transform_param { mirror: true crop_size: 5 scale: 0.01 }
  data_param { source: "nowhere" batch_size: 4 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def test_a_net_with_a_data_layer():
    """Its place is the records'; crops and mirrors are those of plain training."""
    rng = np.random.default_rng(0)
    digits = ArrayRecords(
        data=rng.integers(0, 256, (40, 2, 7, 7), np.uint8), label=rng.integers(0, 3, 40)
    )
    solver = small.settings(TEXT)
    solver.net_param.CopyFrom(parse_net(DATA))
    plain = Net(solver)
    plain.set_training_data(digits)
    batches = Batches(digits, 4, Order(40), transforms=plain.transforms)
    plain.set_training_data(batches, transformed=True)
    plain.train(15)
    trained = train(solver, digits, workers=1, steps=15, validation=digits)
    assert np.array_equal(weights(trained), np.array(plain.get_weights().flat))
    assert trained.outcome.metrics["loss"] > 0


def test_a_net_that_is_given_stays_as_it_is():
    yesterday = train(SOLVER, ARRAYS, workers=1, steps=8).net
    before = np.array(yesterday.get_weights().flat)
    today = train(yesterday, ARRAYS, workers=1, steps=8)
    assert today.net is not yesterday
    assert np.array_equal(yesterday.get_weights().flat, before)
    assert not np.array_equal(weights(today), before)
    assert np.array_equal(weights(today), today.net.get_weights().flat)
    again = train(yesterday, ARRAYS, workers=1, steps=8)  # nothing of today's came into it
    assert np.array_equal(weights(again), weights(today))


def test_a_seed_draws_all_where_the_solver_has_none():
    """`seed` once shuffled the records alone, so that no run came twice."""
    solver = small.settings("random_seed: -1", middle=small.DROPOUT)
    first, second, other, drawn = (
        train(solver, ARRAYS, workers=2, steps=6, seed=seed).weights.flat
        for seed in (5, 5, 6, None)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, drawn)
    theirs = [train(SOLVER, ARRAYS, steps=0, seed=seed).weights.flat for seed in (5, 6)]
    np.testing.assert_array_equal(*theirs)  # of the solver's random_seed


def test_a_net_whose_shape_the_data_tells():
    solver = small.settings('base_lr: 0.1 momentum: 0 lr_policy: "fixed"')
    solver.net_param.CopyFrom(parse_net(DATA))
    rng = np.random.default_rng(5)
    records = ArrayRecords(
        data=rng.integers(0, 256, (40, 2, 7, 7), np.uint8), label=rng.integers(0, 3, 40)
    )
    trained = train(Net(solver), records, workers=1, steps=3)
    assert trained.outcome.iteration == 3
    assert trained.net.copy().get_weights().allclose(trained.weights)


@pytest.mark.parametrize("strategy", [Averaging(4, momentum="average"), AllReduce(),
                                      DynamicAveraging(0.2, 4)], ids=repr)  # fmt: skip
def test_processes_do_what_threads_do(strategy):
    """Over sockets between processes the bits are those over threads."""
    from sparknet.training.schedule import RunPlan
    from sparknet.training.workers.rounds import work

    solver = small.settings(TEXT, middle=small.BATCH_NORM)
    group = [small.learner(rank, 3, TEXT, middle=small.BATCH_NORM) for rank in range(3)]
    small.together(3, lambda rank, comm: work(group[rank], strategy, comm, RunPlan(steps=14)))
    trained = train(
        solver, ARRAYS, workers=3, strategy=strategy, steps=14, seed=3, threads=threads()
    )
    assert np.array_equal(weights(trained), small.weights(group[0]))


def test_what_it_gives(tmp_path):
    """Data from block files, validation, patience, events, weights to begin with."""
    file = tmp_path / "records.blocks"
    write_blocks(file, small.records())
    seen: list[str] = []
    trained = train(
        SOLVER,
        Chain([Blocks(file), Blocks(file)]),
        workers=2,
        strategy=Averaging(2),
        epochs=1,
        validation=(ARRAYS["x"], ARRAYS["t"]),
        validate_every=5,
        on_event=lambda event: seen.append(event["event"]),
    )
    assert seen == [event["event"] for event in trained.history]
    assert begun(trained)["records"] == 2 * small.RECORDS
    assert trained.outcome.iteration == 2 * small.RECORDS // (2 * small.BATCH) == 24
    assert trained.history[-2]["metrics"] == trained.outcome.metrics
    assert trained.history.metrics["loss"][1][-1] == trained.outcome.metrics["loss"]
    assert trained.history[-2]["records"] == small.RECORDS
    trained.net.set_validation_data(ARRAYS)
    assert trained.net.test() == pytest.approx(trained.outcome.metrics, rel=1e-5)
    model = tmp_path / "small.caffemodel"
    trained.weights.save(model)
    again = train(SOLVER, ARRAYS, workers=2, weights=model, steps=0)
    assert np.array_equal(weights(again), weights(trained))


def test_settings_are_checked_before_anything_starts(tmp_path):
    for wrong, message in (
        ({"workers": 0}, "workers must be at least 1, not 0"),
        ({"strategy": "avg"}, "no strategy 'avg'"),
        ({"steps": 3, "epochs": 1}, "steps or epochs"),
        ({"steps": 3, "resume": True}, "resume needs snapshots"),
        ({"steps": 3, "keep": 0}, "keep must be at least 1"),
    ):
        with pytest.raises(SettingError, match=message):
            train(SOLVER, ARRAYS, **wrong)
    with pytest.raises(SettingError, match="training needs a solver"):
        train(SOLVER.net_param, ARRAYS, steps=1)
    with pytest.raises(SettingError, match="this int is not data"):
        train(SOLVER, 3, steps=1)
    with pytest.raises(DataError, match="no column 't'"):
        train(SOLVER, {"x": ARRAYS["x"]}, steps=1)
    with pytest.raises(FileError, match="nowhere: does not exist"):
        train(SOLVER, "nowhere", steps=1)


def test_a_frame_of_pandas_trains_as_its_columns_do():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": [*ARRAYS["t"]], "name": "none"})
    frame["x"] = [*ARRAYS["x"]]
    by_frame, by_arrays = (train(SOLVER, data, steps=3) for data in (frame, ARRAYS))
    assert by_frame.weights.allclose(by_arrays.weights, 0, 0)
    assert len(by_frame.history.events[0].get("workers", [None])) == 1
    strings = {**ARRAYS, "t": np.full(len(ARRAYS["t"]), "cat")}
    with pytest.raises(DataError, match=r"column 't' holds values such as .*'cat'.*: number the"):
        train(SOLVER, strings, steps=3)


def test_what_goes_wrong_in_a_worker_is_raised_here(tmp_path):
    held_out = {"x": ARRAYS["x"]}
    with pytest.raises(DataError, match=r"no column 't'; it has 'x'$"):
        train(SOLVER, ARRAYS, validation=held_out, workers=1, steps=4)
    half = np.arange(len(ARRAYS["x"])) < len(ARRAYS["x"]) // 2  # the driver looks at the first ones
    spoiled = {**ARRAYS, "x": np.where(half[:, None], ARRAYS["x"], np.float32(np.nan))}
    with pytest.raises(DataError, match=r"'x' of the training data holds nan in record \d+"):
        train(SOLVER, spoiled, workers=2, steps=4)


def test_an_error_that_is_none_of_ours(monkeypatch):
    monkeypatch.setattr(local_launcher, "PROGRAM", "tests.training.dying")
    monkeypatch.setenv("DYING", "computing:0:nonsense")
    with pytest.raises(WorkerError, match=r"ValueError: .*nonsense") as caught:
        train(SOLVER, ARRAYS, workers=1, steps=4)
    assert "Traceback" in str(caught.value.__cause__)


def test_a_listener_that_fails_ends_it():
    def fail(event):
        if event["event"] == "round":
            raise LookupError("no place to write")

    said = "on_event failed at the event 'round': LookupError: no place to write"
    with pytest.raises(ListenerError, match=f"^{said}$") as found:
        train(SOLVER, ARRAYS, workers=2, steps=100_000, on_event=fail)
    assert isinstance(found.value.__cause__, LookupError)


def test_a_silent_worker(monkeypatch):
    """One that hangs is taken for lost after the deadline, and ended."""
    monkeypatch.setattr(local_launcher, "PROGRAM", "tests.training.dying")
    monkeypatch.setenv("DYING", "silent:1:9")
    with pytest.raises(PeerLost, match=r"worker 1 on 127.* is lost: .*\(worker 0\)"):
        train(SOLVER, ARRAYS, workers=2, steps=40, deadline=2.0)


PLACES = ["computing:1:9", "computing:0:9", "sending:1:17", "receiving:1:17", "receiving:0:34",
          "snapshotting:1:2", "snapshotting:0:4", "committing:0:2"]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_worker(place, tmp_path, monkeypatch):
    """Which one it was is said at once; from the last snapshot the run ends as if uncut."""
    settings = {"workers": 2, "strategy": Averaging(4), "snapshot_every": 1}
    with monkeypatch.context() as patch:
        patch.setattr(local_launcher, "PROGRAM", "tests.training.dying")
        patch.setenv("DYING", place)
        before = time.monotonic()
        rank = place.split(":")[1]
        with pytest.raises(PeerLost, match=f"worker {rank} on this machine.*killed by SIGKILL"):
            train(SOLVER, ARRAYS, snapshots=tmp_path / "cut", steps=20, **settings)
        assert time.monotonic() - before < 30
    assert not list((tmp_path / "cut").glob(".*"))
    resumed = train(SOLVER, ARRAYS, snapshots=tmp_path / "cut", steps=20, resume=True, **settings)
    assert begun(resumed)["resumed"] is not None
    assert np.array_equal(weights(resumed), uncut(20))


def test_a_process_that_hangs_up_and_does_not_end(monkeypatch):
    monkeypatch.setattr(local_launcher, "_END", 0.05)
    place = SimpleNamespace(ranks=[0])
    host = local_launcher.ProcessHost(place, None, lambda: None)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        host.process = process
        assert "hung up and does not end; no snapshots are made" in str(host.failure(()))
        process.kill()
        process.wait()
        assert "was killed by SIGKILL; no snapshots are made" in str(host.failure(()))


_UNCUT = {}


def uncut(steps):
    """The weights of a run that nothing happened to."""
    if steps not in _UNCUT:
        _UNCUT[steps] = weights(
            train(SOLVER, ARRAYS, workers=2, strategy=Averaging(4), steps=steps)
        )
    return _UNCUT[steps]


def test_interruption_snapshots_and_ends(tmp_path):
    def interrupt(event):
        if event["event"] == "round" and event["round"] == 3:
            signal.raise_signal(signal.SIGINT)

    settings = {"workers": 2, "strategy": Averaging(4), "snapshots": tmp_path / "s"}
    with pytest.raises(KeyboardInterrupt, match=r"at iteration \d+; left: .*round-") as caught:
        train(SOLVER, ARRAYS, steps=100_000, on_event=interrupt, **settings)
    held = caught.value.trained
    assert np.array_equal(weights(held), uncut(held.outcome.iteration))
    kept = int(next((tmp_path / "s").glob("run-*/*")).name.partition("-")[2])
    assert kept >= 3
    resumed = train(SOLVER, ARRAYS, steps=4 * kept + 8, resume=True, **settings)
    assert begun(resumed)["round"] == kept
    assert np.array_equal(weights(resumed), uncut(4 * kept + 8))


@pytest.mark.parametrize("started", [0, 1])
def test_an_interruption_before_the_workers_have_met(started, tmp_path):
    """They hear of it after their first round."""

    def interrupt(host: local_launcher.ProcessHost) -> None:
        if host.ranks == [started]:
            signal.raise_signal(signal.SIGINT)

    with (
        small.on_start(interrupt),
        pytest.raises(KeyboardInterrupt, match=r"at iteration 4; left: .*round-0*1"),
    ):
        train(SOLVER, ARRAYS, workers=2, strategy=Averaging(4), steps=10**6, snapshots=tmp_path)


def test_a_snapshot_of_another_run_is_refused(tmp_path):
    train(SOLVER, ARRAYS, workers=2, steps=20, snapshots=tmp_path, snapshot_every=1)
    with pytest.raises(
        FileError, match=r"round-0*2: is of another run: its order_seed is 0, not 5"
    ):
        train(SOLVER, ARRAYS, workers=2, steps=40, snapshots=tmp_path, resume=True, seed=5)


def test_the_fewest_hosts_have_an_old_name():
    with (
        pytest.warns(DeprecationWarning, match="min_workers= is called min_hosts= now"),
        pytest.raises(SettingError, match="min_hosts=4 is more than workers=3"),
    ):
        train(SOLVER, ARRAYS, workers=3, min_workers=4, steps=5)


def test_another_number_of_workers_goes_on(tmp_path):
    """Epochs and iterations count as they did for the two that began."""
    settings = {
        "snapshots": tmp_path,
        "snapshot_every": 1,
        "strategy": Averaging(4),
    }
    first = train(SOLVER, ARRAYS, workers=2, epochs=1, **settings).outcome
    records = len(next(iter(ARRAYS.values())))
    assert first.samples >= records
    second = train(SOLVER, ARRAYS, workers=3, epochs=2, resume=True, **settings)
    assert 2 * first.iteration <= second.outcome.iteration <= 2 * first.iteration + 1
    assert (
        2 * records
        <= second.outcome.samples
        < 2 * records + 3 * 2 * first.samples / first.iteration
    )
    [note] = [event["text"] for event in second.history if event["event"] == "note"]
    assert "the snapshot is of 2 workers, and 3 go on from it" in note


PROGRAM = """
import sys
from sparknet.training.local_training import train
from tests.training import small

def tell(event):
    if event["event"] == "round" and event["round"] == 2:
        print(*[member.process.pid for member in members], flush=True)

members = []
with small.on_start(members.append):
    train(sys.argv[1], dict(small.records().arrays), workers=2, steps=10**9, on_event=tell)
"""


def test_workers_do_not_outlive_who_started_them(tmp_path):
    write_text(tmp_path / "solver.prototxt", SOLVER)
    home = tmp_path / "home"
    home.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "solver.prototxt")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(home), "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    workers = [int(number) for number in parent.stdout.readline().split()]
    assert len(workers) == 2
    parent.kill()
    parent.wait()
    rest = parent.stdout.read()  # ends when the last worker, which holds it too, has ended
    assert rest == ""
    assert not list(home.iterdir())


def test_training_without_an_end_is_refused():
    said = "training has no end: give steps, epochs or seconds, or max_iter in the solver"
    with pytest.raises(SettingError, match=said):
        train(SOLVER, ARRAYS, workers=1)
    with pytest.raises(SettingError, match=said):
        train(SOLVER, ARRAYS, workers=1, validation=ARRAYS, validate_every=1, patience=2)
    assert train(SOLVER, ARRAYS, workers=1, steps=0).outcome.iteration == 0
