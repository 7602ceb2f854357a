"""Net: train, test, forward, weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparknet
from sparknet import Net, SolverParams, caffe
from sparknet.errors import SolverError
from sparknet.proto import parse_net, parse_solver
from tests.net.nets import NET, blobs_of_three, solver_text


def test_trains_and_tests() -> None:
    net = Net(solver_text())
    net.set_training_data(blobs_of_three())
    net.set_validation_data(blobs_of_three(51, seed=1))
    first = net.train(1)
    assert net.train(60) < first / 2
    assert net.iter == 61
    found = net.test()
    assert set(found) == {"accuracy", "loss"}
    assert found["accuracy"] > 0.9
    assert (found["accuracy"] * 51) == pytest.approx(round(found["accuracy"] * 51), abs=1e-4)


def test_metrics_are_those_of_all_records_at_once() -> None:
    """51 records in batches of 8: nothing is lost, and nothing padded."""
    data, labels = blobs_of_three(51)
    net = Net(NET, seed=1)
    net.set_validation_data((data, labels))
    whole = net.forward((data, labels))
    found = net.test()
    for name in ("accuracy", "loss"):
        assert found[name] == pytest.approx(float(whole[name]), rel=1e-5)
    scores = net.forward({"data": data}, outputs=["ip"])["ip"]
    assert found["accuracy"] == pytest.approx(np.mean(scores.argmax(1) == labels), rel=1e-6)


def test_forward_without_labels_gives_what_can_be_had() -> None:
    net = Net(NET, seed=1)
    assert net.forward({"data": np.ones((5, 2))})["ip"].shape == (5, 3)


@pytest.mark.parametrize("iter_size", [1, 3])
def test_training_is_that_of_pycaffe(iter_size: int) -> None:
    data, labels = blobs_of_three(40)
    text = solver_text(iter_size=iter_size, momentum=0.9, type='"Nesterov"')
    net = Net(text)
    net.set_training_data((data, labels))
    loss = net.train(4)
    solver = caffe.solver_from_text(text.replace("random_seed: 1", "random_seed: 1"))
    losses, batch = [], 0
    for _ in range(4):
        solver.net.clear_param_diffs()
        for _ in range(iter_size):
            rows = np.arange(batch * 8, batch * 8 + 8) % 40
            solver.net.forward(data=data[rows], label=labels[rows])
            losses.append(float(solver.net.blobs["loss"].data))
            solver.net.backward()
            batch += 1
        solver.apply_update()
    assert loss == pytest.approx(np.mean(losses))
    np.testing.assert_array_equal(net.flat_weights, solver.net.flat_params)


def test_made_from_anything_that_describes_it(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(solver_text())
    nets = [NET, tmp_path / "net.prototxt", str(tmp_path / "net.prototxt"), parse_net(NET)]
    nets.append(sparknet.NetParams.from_text(NET))
    for source in nets:
        net = Net(source, seed=3)
        assert net.solver is None
        assert net.net.params["ip"][0].data.shape == (3, 2)
        with pytest.raises(SolverError, match="without a solver cannot be trained"):
            net.train(1)
    text = solver_text()
    solvers = [text, tmp_path / "solver.prototxt", parse_solver(text), SolverParams.from_text(text)]
    for source in solvers:
        net = Net(source)
        net.set_training_data(blobs_of_three())
        net.train(1)
        assert net.iter == 1


def test_weights_go_out_and_in(tmp_path: Path) -> None:
    one, two = Net(NET, seed=1), Net(NET, seed=2)
    assert not one.get_weights().allclose(two.get_weights())
    two.set_weights(one.get_weights())
    assert one.get_weights().allclose(two.get_weights(), 0, 0)
    for name in ("w.caffemodel", "w.h5"):
        one.save(tmp_path / name)
        assert Net(NET, tmp_path / name).get_weights().allclose(one.get_weights(), 0, 0)
        three = Net(NET, seed=3)
        three.load(tmp_path / name)
        assert three.get_weights().allclose(one.get_weights(), 0, 0)
