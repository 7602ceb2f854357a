"""A learner over another pycaffe does, through public names, what the embedded engine's does.

The variable SPARKNET_CAFFE names another module than public_caffe for the tests of strategies: a
real Caffe.
"""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import SettingError, SpecError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.learner import NetFeed, SolverLearner
from sparknet.net.pycaffe_learner import Mirror, PycaffeLearner
from sparknet.net.weighting import weighted
from sparknet.training import train
from sparknet.training.driver import setup
from sparknet.training.schedule import RunPlan
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)
from sparknet.training.workers.rounds import work
from tests.net import public_caffe
from tests.training import small

SOLVER = 'weight_decay: 0.01 lr_policy: "multistep" stepvalue: 6 stepvalue: 13 gamma: 0.5'
BACKEND = os.environ.get("SPARKNET_CAFFE", public_caffe.__name__)
NEAR = 1e-6 if public_caffe.__name__ == BACKEND else 5e-3
"""What int8 codes make of other last bits."""
CLIPPED = SOLVER + " clip_gradients: 0.5 iter_size: 2"
ARRAYS = dict(small.records().arrays)

Array = np.ndarray[Any, Any]


def learner(
    folder: Path, rank: int = 0, size: int = 1, text: str = SOLVER, middle: str = ""
) -> PycaffeLearner:
    solver = small.settings(text, middle=middle)
    place = folder / str(rank)
    place.mkdir(exist_ok=True)
    solver.snapshot_prefix = str(place / "solver")
    net = Net(solver, backend=BACKEND)
    net.set_weights(Net(solver).get_weights())
    order = Order(small.RECORDS, seed=3, rank=rank, size=size)
    batches = Batches(small.records(), small.BATCH, order)
    net.set_training_data(batches, transformed=True)
    return PycaffeLearner(net, NetFeed(net, batches), seed=7)


def embedded(rank: int = 0, size: int = 1, text: str = SOLVER, middle: str = "") -> SolverLearner:
    solver = caffe.get_solver(small.settings(text, middle=middle))
    solver.net.flat_params.copy_from(Net(small.settings(text, middle=middle)).net.flat_params)
    order = Order(small.RECORDS, seed=3, rank=rank, size=size)
    return SolverLearner(
        solver, small.ArrayFeed(solver.net, Batches(small.records(), small.BATCH, order))
    )


def flat(one):
    return np.array(one.weights)


CASES: list[tuple[Strategy, str]] = [
    (Averaging(steps=4), SOLVER),
    (Averaging(steps=4, momentum="average", warmup=5), SOLVER),
    (Averaging(steps=4, codec="int8"), SOLVER),
    (DynamicAveraging(threshold=0.01, check_every=3), SOLVER),
    (SlowMo(steps=4), SOLVER + " type: 'Nesterov'"),
    (DiLoCo(steps=4), SOLVER + " type: 'RMSProp' momentum: 0 delta: 0.01"),
    (BMUF(steps=4), SOLVER),
    (
        ElasticAveraging(every=4, momentum="average"),
        SOLVER + " type: 'Adam' base_lr: 0.01 delta: 0.01",
    ),
    (AllReduce(steps=4), CLIPPED),
    (AllReduce(steps=4), SOLVER + " type: 'AdaDelta' delta: 1e-6 base_lr: 1"),
]


@pytest.mark.parametrize(("strategy", "text"), CASES, ids=repr)
@pytest.mark.parametrize("middle", ["", small.BATCH_NORM])
def test_strategies(strategy, text, middle, tmp_path):
    mine = [embedded(rank, 3, text, middle) for rank in range(3)]
    others = [learner(tmp_path, rank, 3, text, middle) for rank in range(3)]
    for group in (mine, others):
        group_of = group
        small.together(
            3,
            lambda rank, comm, group=group_of: work(group[rank], strategy, comm, RunPlan(steps=22)),
        )
    np.testing.assert_allclose(flat(others[0]), flat(mine[0]), rtol=1e-5, atol=NEAR)
    for one, other in zip(mine, others, strict=True):
        np.testing.assert_array_equal(flat(other), flat(others[0]))
        for ours, theirs in zip(one.histories, other.histories, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=NEAR)
        assert (other.iter, other.rate, other.last_rate) == (one.iter, one.rate, one.last_rate)


@pytest.mark.parametrize("strategy", [Downpour(steps=4), Averaging(seconds=0.005)], ids=repr)
def test_strategies_whose_results_depend_on_time(strategy, tmp_path):
    group = [learner(tmp_path, rank, 2) for rank in range(2)]
    before = flat(group[0])
    done = small.together(
        2, lambda rank, comm: work(group[rank], strategy, comm, RunPlan(steps=22))
    )
    assert {one.iteration for one in done} == {group[0].iter}
    np.testing.assert_array_equal(flat(group[0]), flat(group[1]))
    assert not np.allclose(flat(group[0]), before)


def test_the_embedded_engine_copies_nothing():
    one = embedded()
    assert one.weights is one.solver.net.flat_params
    assert one.gradients is one.solver.net.flat_diffs
    (history,), (own,) = one.histories, one.solver.flat_history
    assert history is own
    shared = np.asarray(one.solver.net.params["ip1"][0].data)
    assert one.weights.address == shared.__array_interface__["data"][0]
    one.step(2)
    assert one.weights is one.solver.net.flat_params


def test_once_a_round(tmp_path, monkeypatch):
    """Weights are gathered and scattered once a round, and a check alone scatters nothing."""
    calls: list[str] = []
    group = [learner(tmp_path, rank, 2) for rank in range(2)]
    for name in ("gather", "scatter"):
        copy = getattr(group[0]._weights, f"_{name}")
        monkeypatch.setattr(
            group[0]._weights,
            f"_{name}",
            lambda flat, name=name, copy=copy: (calls.append(name), copy(flat)),
        )
    strategy: Strategy = Averaging(steps=4)
    small.together(2, lambda rank, comm: work(group[rank], strategy, comm, RunPlan(steps=12)))
    assert calls == ["gather", *(["scatter", "gather"] * 3)]
    calls.clear()
    strategy = DynamicAveraging(threshold=1e9, check_every=3)
    small.together(2, lambda rank, comm: work(group[rank], strategy, comm, RunPlan(steps=24)))
    assert calls == ["scatter", *(["gather"] * 4)]


def test_mirror():
    backend = np.arange(4, dtype=np.float32)
    calls = []

    def gather(flat: NDArray) -> None:
        calls.append("gather")
        flat.copy_from(backend)

    def scatter(flat: NDArray) -> None:
        calls.append("scatter")
        backend[:] = flat.numpy()

    mirror = Mirror(4, gather, scatter)
    assert mirror.array is mirror.array
    mirror.settle()
    assert calls == ["gather"]
    mirror.array[1:3].fill(7)
    assert mirror.is_written
    mirror.settle()
    mirror.settle()
    assert calls == ["gather", "scatter"]
    assert backend.tolist() == [0, 7, 7, 3]
    held = mirror.array.numpy()
    assert mirror.is_written  # whoever holds it may write at any time
    held[0] = 5
    del held
    mirror.settle()
    assert backend.tolist() == [5, 7, 7, 3]
    backend[:] = 1
    mirror.expire()
    mirror.settle()
    assert mirror.array.numpy().tolist() == [1, 1, 1, 1]


def test_the_iteration_is_set_when_the_rate_depends_on_it(tmp_path):
    one = learner(tmp_path, text='lr_policy: "inv" gamma: 0.0001 power: 0.75')
    one.step(3)
    one.seek(5)
    one.step(1)
    assert (one.iter, one._solver.iter) == (6, 4)  # the rates differ by less than a thousandth
    one.seek(400)
    one.step(1)
    assert (one.iter, one._solver.iter) == (401, 401)
    exact = learner(tmp_path, 1, 2, text='type: "Adam" base_lr: 0.01')
    exact.step(3)
    exact.seek(5)
    exact.step(1)
    assert (exact.iter, exact._solver.iter) == (6, 6)
    assert not list(tmp_path.glob("*/*"))


def test_a_run_goes_on_bit_for_bit(tmp_path):
    solver = small.settings(SOLVER, middle=small.BATCH_NORM)
    settings = {
        "workers": 2,
        "strategy": SlowMo(steps=4),
        "backend": public_caffe,
        "threads": 1,
    }
    whole = train(solver, ARRAYS, steps=24, **settings)
    kept = {**settings, "snapshots": tmp_path, "snapshot_every": 1}
    train(solver, ARRAYS, steps=12, **kept)
    resumed = train(solver, ARRAYS, steps=24, resume=True, **kept)
    rounds = [event["round"] for event in resumed.history if event["event"] == "round"]
    assert rounds == [4, 5, 6]
    np.testing.assert_array_equal(resumed.weights.flat, whole.weights.flat)
    assert not any(event["event"] == "note" for event in resumed.history)


@pytest.mark.parametrize("first", ["embedded", "tests.net.public_caffe"])
def test_another_backend_goes_on_with_a_run(first, tmp_path, monkeypatch):
    """Whatever the backend is called, in a snapshot that names it (as 0.1.0 wrote them) or not."""
    names = ["embedded", "tests.net.public_caffe"]
    names.remove(first)
    solver = small.settings(SOLVER, middle=small.BATCH_NORM)
    settings = {"workers": 2, "strategy": SlowMo(steps=4), "threads": 1}
    whole = train(solver, ARRAYS, steps=24, backend="embedded", **settings)
    settings |= {"snapshots": tmp_path, "snapshot_every": 1}
    with monkeypatch.context() as patch:
        old = setup.identity
        patch.setattr(setup, "identity", lambda *known: {**old(*known), "backend": first})
        train(solver, ARRAYS, steps=12, backend=first, **settings)
    resumed = train(solver, ARRAYS, steps=24, backend=names[0], resume=True, **settings)
    rounds = [event["round"] for event in resumed.history if event["event"] == "round"]
    assert rounds == [4, 5, 6]
    np.testing.assert_array_equal(resumed.weights.flat, whole.weights.flat)
    notes = [event["text"] for event in resumed.history if event["event"] == "note"]
    assert [note.partition(":")[0] for note in notes] == (
        ["the snapshot is of a backend that does not save its random numbers"]
        if first != "embedded"
        else []
    )


def test_a_snapshot_holds_no_random_numbers_and_the_run_says_so(tmp_path):
    settings = {
        "workers": 1,
        "backend": "tests.net.public_caffe",
        "snapshots": tmp_path,
        "snapshot_every": 1,
    }
    solver = small.settings(SOLVER, middle=small.DROPOUT)
    train(solver, ARRAYS, steps=10, **settings)
    resumed = train(solver, ARRAYS, steps=20, resume=True, **settings)
    (note,) = [event["text"] for event in resumed.history if event["event"] == "note"]
    assert note == (
        "backend 'tests.net.public_caffe' does not save its random numbers: drop will draw "
        "others than without the break"
    )


def poor(monkeypatch, *lacking, of_module=()):
    """A pycaffe whose solvers lack some names."""
    module = ModuleType("poor_caffe")
    vars(module).update(
        {name: vars(public_caffe)[name] for name in public_caffe.__all__ if name not in of_module}
    )

    def get_solver(path):
        solver = public_caffe.get_solver(path)
        names = object.__getattribute__(solver, "_names") - {*lacking}
        return type(solver)(object.__getattribute__(solver, "_behind"), names)

    vars(module)["get_solver"] = get_solver
    monkeypatch.setitem(sys.modules, "poor_caffe", module)
    return module


def test_what_a_backend_cannot_do_is_refused(monkeypatch, tmp_path):
    solver = small.settings(SOLVER)

    def refused(said, kind=SettingError, **settings):
        settings = {"backend": "poor_caffe", "workers": 1, "steps": 4, **settings}
        with pytest.raises(kind, match=said):
            train(solver, ARRAYS, **settings)

    poor(monkeypatch, "restore")
    histories = "^backend 'poor_caffe' has no Solver.restore, needed for the solver's histories "
    refused(f"{histories}by strategy 'slowmo'$", strategy="slowmo")
    refused(
        "has no Solver.restore, needed for the solver's histories in snapshots$",
        snapshots=tmp_path / "kept",
    )
    assert not (tmp_path / "kept").exists()
    poor(monkeypatch, "snapshot")
    refused("no Solver.snapshot, needed for .* by strategy 'bmuf'", strategy="bmuf")
    poor(monkeypatch, "apply_update")
    refused("no Solver.apply_update, needed for training")
    poor(monkeypatch, of_module=("Net",))
    refused("is not a pycaffe module: it has no Net", SpecError)
    refused("'bf16' needs the embedded backend, not 'poor_caffe'", SpecError, precision="bf16")
    refused("backend 'no_caffe' cannot be imported: No module named", SpecError, backend="no_caffe")
    mine = ModuleType("mine")
    vars(mine).update({name: vars(public_caffe)[name] for name in public_caffe.__all__})
    refused("backend 'mine' is not what the workers import under this name", backend=mine)
    with pytest.raises(SettingError, match="this Net has the backend 'embedded': give backend to"):
        train(Net(solver), ARRAYS, workers=1, steps=1, backend=public_caffe)
    with pytest.raises(SpecError, match="has no layer type RecordWeights: weights of records need"):
        weighted(Net(solver, backend=public_caffe))
    poor(monkeypatch)
    with pytest.raises(SettingError, match=r"this Net has the backend 'tests\.net\.public_caffe'"):
        train(Net(solver, backend=public_caffe), ARRAYS, steps=1, backend="poor_caffe")


def test_a_net_of_the_backend_that_has_little(monkeypatch, tmp_path):
    """Plain averaging needs no histories."""
    poor(monkeypatch, "restore", "snapshot")
    (tmp_path / "poor_caffe.py").write_text(
        "import sys\nfrom tests.net import public_caffe\nsys.modules[__name__] = public_caffe\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    net = Net(small.settings(SOLVER), backend="poor_caffe")
    trained = train(net, ARRAYS, workers=2, steps=10, threads=1)
    own = train(small.settings(SOLVER), ARRAYS, workers=2, steps=10, threads=1)
    np.testing.assert_allclose(trained.weights.flat, own.weights.flat, rtol=1e-5, atol=1e-6)
    assert trained.net.backend.name == "poor_caffe"
    np.testing.assert_array_equal(trained.net.get_weights().flat, trained.weights.flat)


def test_whoever_waits_for_a_gradient_sees_the_next_one(tmp_path):
    one, seen = learner(tmp_path), list[Array]()
    one.on_gradient = lambda weights, gradients: seen.append(np.array(gradients))
    one.compute_gradient()
    one.compute_gradient()
    assert len(seen) == 1
    mine = embedded()
    mine.compute_gradient()
    np.testing.assert_allclose(seen[0], np.array(mine.gradients), rtol=1e-5, atol=1e-7)
