"""Training runs, snapshots and refusals against what real Caffe made of them."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import caffe
from sparknet.caffe.solvers import rate
from sparknet.errors import SparkNetError
from sparknet.proto import read_model, read_state
from tests.caffe.replay import close, keys, set_params
from tests.goldens import GOLDENS, cases, golden, index

SOLVERS = GOLDENS / "solvers"
REFUSED = [c for c in index("errors") if c["action"] in ("solver", "step", "restore")]


def arrays_of(case, folder):
    with np.load(folder / f"{case['name']}.npz") as data:
        return dict(data)


def train(case, solver, arrays, steps):
    """Drive the solver by hand and compare each step."""
    for step in steps:
        solver.net.clear_param_diffs()
        losses = [forward_backward(solver, arrays, step, i) for i in range(case["iter_size"])]
        now = rate.current_step(solver.param, solver.iter, solver._current_step)
        used = rate.learning_rate(solver.param, solver.iter, now)
        solver.apply_update()
        close(case, used, arrays["rate"][step], f"rate of step {step}")
        close(case, np.mean(losses), arrays["loss"][step], f"loss of step {step}")
        compare_params(case, solver, {k: v[step] for k, v in keys(arrays, "param/")}, step)


def forward_backward(solver, arrays, step, i):
    for blob, values in keys(arrays, "in/"):
        solver.net.blobs[blob].data[...] = values[step, i]
    return solver._forward_backward()


def compare_params(case, solver, wanted, at):
    for key, want in wanted.items():
        layer, _, number = key.rpartition("/")
        got = solver.net.params[layer][int(number)].data
        close(case, got, want, f"{key} after step {at}")


@cases("solvers")
def test_run(case, monkeypatch):
    monkeypatch.chdir(SOLVERS)
    arrays = arrays_of(case, SOLVERS)
    solver = caffe.get_solver(f"{case['name']}.solver.prototxt")
    set_params(solver.net, arrays, "init/")
    train(case, solver, arrays, range(case["steps"]))
    assert len(solver.history) == len(dict(keys(arrays, "history/")))
    for number, want in keys(arrays, "history/"):
        close(case, solver.history[int(number)], want, f"history {number}")


@cases("solvers/snapshots")
def test_restored(case, monkeypatch):
    monkeypatch.chdir(SOLVERS / "snapshots" / case["name"])
    arrays = arrays_of(case, Path())
    solver = caffe.get_solver(f"{case['name']}.solver.prototxt")
    solver.restore(case["state"])
    assert solver.iter == case["snapshot_at"]
    compare_params(case, solver, dict(keys(arrays, "restored/")), solver.iter)
    train(case, solver, arrays, range(case["snapshot_at"], case["steps"]))


@cases("solvers/snapshots")
def test_written(case, tmp_path, monkeypatch):
    """Our files after the same steps hold what Caffe's hold."""
    folder = SOLVERS / "snapshots" / case["name"]
    monkeypatch.chdir(folder)
    arrays = arrays_of(case, folder)
    solver = caffe.get_solver(f"{case['name']}.solver.prototxt")
    set_params(solver.net, arrays, "init/")
    train(case, solver, arrays, range(case["snapshot_at"]))
    monkeypatch.chdir(tmp_path)
    solver.snapshot()
    assert {path.name for path in tmp_path.iterdir()} == {case["model"], case["state"]}
    compare_states(case, Path(case["state"]), folder / case["state"])
    compare_models(case, Path(case["model"]), folder / case["model"])


def compare_states(case, mine, theirs):
    got, want = read_state(mine), read_state(theirs)
    names = ("iteration", "current_step", "learned_net")
    assert [getattr(got, n) for n in names] == [getattr(want, n) for n in names]
    for number, (one, other) in enumerate(zip(got.history, want.history, strict=True)):
        close(case, one, other, f"history {number}")


def compare_models(case, mine, theirs):
    got, want = read_model(mine, diffs=True), read_model(theirs, diffs=True)
    with_diffs = "diff" in case["name"]
    assert [layer.name for layer in got.net.layer] == [layer.name for layer in want.net.layer]
    pairs = [(got.arrays, want.arrays)]
    if with_diffs:
        assert got.diffs is not None
        assert want.diffs is not None
        pairs.append((got.diffs, want.diffs))
    for one, other in pairs:
        for name, mine_, theirs_ in zip(names(got), one, other, strict=True):
            for a, b in zip(mine_, theirs_, strict=True):
                if b is None:
                    assert a is None
                else:
                    close(case, a, b, name)


def names(model):
    return (layer.name for layer in model.net.layer)


@golden("solvers/weights", "from_weights")
def test_weights(monkeypatch):
    (case,) = index("solvers/weights")
    monkeypatch.chdir(SOLVERS / "weights")
    arrays = arrays_of(case, Path())
    solver = caffe.get_solver(f"{case['name']}.solver.prototxt")
    compare_params(case, solver, dict(keys(arrays, "init/")), 0)
    train(case, solver, arrays, range(case["steps"]))


@golden("solvers/testnets", "with_test_nets")
def test_test_nets(monkeypatch):
    (case,) = index("solvers/testnets")
    monkeypatch.chdir(SOLVERS / "testnets")
    arrays = arrays_of(case, Path())
    solver = caffe.get_solver(f"{case['name']}.solver.prototxt")
    set_params(solver.net, arrays, "init/")
    assert solver.net._layer_names == case["train_layers"]
    for step in range(case["steps"]):
        for blob, values in keys(arrays, "in/"):
            solver.net.blobs[blob].data[...] = values[step, 0]
        solver.step(1)
        compare_params(case, solver, {k: v[step] for k, v in keys(arrays, "param/")}, step)
    for number, expected in enumerate(case["test_nets"]):
        net = solver.test_nets[number]
        assert (net._layer_names, net.outputs) == (expected["layers"], expected["outputs"])
        for blob, value in keys(arrays, f"test{number}/in/"):
            net.blobs[blob].data[...] = value
        net.forward()
        for blob, want in keys(arrays, f"test{number}/out/"):
            close(case, net.blobs[blob].data, want, f"test net {number}, {blob}")


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_refused(case, monkeypatch):
    monkeypatch.chdir(GOLDENS / "errors")
    if case["action"] == "solver":
        with pytest.raises(SparkNetError):
            caffe.get_solver(case["file"])
        return
    solver = caffe.get_solver(case["file"])
    before = [blob.data.copy() for own in solver.net.params.values() for blob in own]
    with pytest.raises(SparkNetError) as refused:
        solver.step(1) if case["action"] == "step" else solver.restore(case["state"])
    assert len(str(refused.value).splitlines()) == 1
    after = [blob.data for own in solver.net.params.values() for blob in own]
    assert solver.iter == 0
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
