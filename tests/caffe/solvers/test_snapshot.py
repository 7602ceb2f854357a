"""Snapshots: names, whole files, and going on as if nothing had happened."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import caffe
from sparknet.caffe.solvers import Solver
from sparknet.errors import FileError, SolverError
from sparknet.proto import SolverState, write_state
from tests.caffe.solvers import small

RATES = 'lr_policy: "multistep" gamma: 0.5 stepvalue: 2 stepvalue: 3 weight_decay: 0.01'


def saving(kind: str, prefix: Path, form: str = "BINARYPROTO", more: str = "") -> Solver:
    text = f'{RATES} snapshot_prefix: "{prefix}" snapshot_format: {form} {more}'
    return small.make_solver(kind, text)


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5"])
@pytest.mark.parametrize("kind", small.KINDS)
def test_resuming_changes_nothing(kind, form, tmp_path):
    straight = saving(kind, tmp_path / "a", form)
    small.train(straight, 4)
    straight.snapshot()
    small.train(straight, 5)
    resumed = saving(kind, tmp_path / "b", form, "random_seed: 8")
    resumed.restore(tmp_path / ("a_iter_4.solverstate" + (".h5" if form == "HDF5" else "")))
    assert resumed.iter == 4
    small.train(resumed, 5)
    assert np.array_equal(small.weights(resumed), small.weights(straight))
    pairs = zip(resumed.history, straight.history, strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)


def test_names_and_moments(tmp_path):
    solver = saving("SGD", tmp_path / "net", more="snapshot: 2 max_iter: 5")
    small.feed(solver, 0)
    solver.solve()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"net_iter_{at}.{end}" for at in (2, 4, 5) for end in ("caffemodel", "solverstate")
    ]
    again = saving("SGD", tmp_path / "net", more="snapshot: 2 max_iter: 4 random_seed: 9")
    again.solve(tmp_path / "net_iter_4.solverstate")
    assert again.iter == 4
    small.train(again, 1)


def test_without_a_prefix_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small.make_solver("SGD", "max_iter: 1").solve()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5"])
def test_a_failing_write_leaves_the_old_files(form, tmp_path, monkeypatch):
    solver = saving("Adam", tmp_path / "net", form)
    small.train(solver, 2)
    solver.snapshot()
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    small.train(solver, 1)
    solver._iter = 2  # the same names again
    with monkeypatch.context() as broken:
        broken.setattr("sparknet.proto.byte_source.Path.replace", full)
        with pytest.raises(FileError, match="no space left"):
            solver.snapshot()
        state = SolverState(2, "", 0, solver.history)
        with pytest.raises(FileError, match="no space left"):
            write_state(next(tmp_path.glob("*.solverstate*")), state)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_a_state_that_does_not_fit_changes_nothing(tmp_path):
    adam, sgd = saving("Adam", tmp_path / "adam"), saving("SGD", tmp_path / "sgd")
    small.train(adam, 1)
    adam.snapshot()
    before = small.weights(sgd)
    with pytest.raises(SolverError, match=r"holds 8 history blobs, .* needs 4"):
        sgd.restore(tmp_path / "adam_iter_1.solverstate")
    other = small.settings("SGD")
    other.net_param.layer[4].inner_product_param.num_output = 3
    other.net_param.layer[1].input_param.shape[0].dim[1] = 3
    small.train(sgd, 1)
    sgd.snapshot()
    with pytest.raises(SolverError, match=r"history blob 2 is 2 x 5.*needs 3 x 5"):
        caffe.get_solver(other).restore(tmp_path / "sgd_iter_1.solverstate")
    (tmp_path / "sgd_iter_1.caffemodel").unlink()
    with pytest.raises(FileError, match="missing"):
        sgd.restore(tmp_path / "sgd_iter_1.solverstate")
    assert sgd.iter == 1
    assert not np.array_equal(small.weights(sgd), before)


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(SolverError, match="missing or cannot be written"):
        saving("SGD", tmp_path / "no" / "net", more="snapshot: 1")
    with pytest.raises(SolverError, match="no snapshot_prefix"):
        small.make_solver("SGD", "snapshot: 1")


@pytest.mark.parametrize("train", [lambda solver: solver.step(1), lambda solver: solver.solve()])
def test_the_last_snapshots_place_is_looked_at_before_training(train, tmp_path):
    solver = saving("SGD", tmp_path / "no" / "net")
    before = small.weights(solver)
    with pytest.raises(SolverError, match=r"the folder '.*no' is missing or cannot be written"):
        train(solver)
    assert solver.iter == 0
    np.testing.assert_array_equal(small.weights(solver), before)
    solver.param.snapshot_after_train = False
    solver.step(1)
    assert solver.iter == 1
