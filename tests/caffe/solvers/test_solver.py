"""The training loop: sources, callbacks, tests, what is shown, interruption, our own policies."""

import logging
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from sparknet import caffe
from sparknet.caffe.solvers import SOLVERS, Solver
from sparknet.caffe.solvers.flat import Flat
from sparknet.caffe.solvers.rate import learning_rate
from sparknet.caffe.solvers.report import SmoothedLoss
from sparknet.dsl import SolverParams
from sparknet.errors import SolverError
from sparknet.proto import parse_net, parse_solver
from sparknet.proto.solver import SOLVER_TYPES, check_step
from tests.caffe.solvers import small
from tests.goldens import ROOT


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "sparknet.caffe")

    class Lines(list[str]):
        def __iter__(self):
            return iter(caplog.messages)

    return Lines()


def test_sources(tmp_path):
    net, file = tmp_path / "net.prototxt", tmp_path / "solver.prototxt"
    net.write_text(small.NET)
    text = f'net: "{net}" type: "Adam" base_lr: 0.1 lr_policy: "fixed" random_seed: 7'
    file.write_text(text)
    solvers = [
        caffe.get_solver(str(file)),
        caffe.get_solver(file),
        caffe.AdamSolver(str(file)),
        caffe.solver_from_text(text),
        caffe.get_solver(SolverParams(net=str(net), type="Adam", base_lr=0.1, lr_policy="fixed",
                                      random_seed=7)),
        caffe.AdamSolver(small.settings("Adam"), net=parse_net(small.NET)),
        caffe.get_solver(small.settings("Adam"), net=str(net)),
    ]  # fmt: skip
    assert {type(solver) for solver in solvers} == {caffe.AdamSolver}
    first = small.weights(solvers[0])
    assert all(np.array_equal(small.weights(solver), first) for solver in solvers)
    assert solvers[0].param.snapshot_prefix == str(tmp_path / "solver")
    assert isinstance(caffe.SGDSolver(str(file)), caffe.SGDSolver)
    with pytest.raises(SolverError, match="AdaGrad takes none"):
        caffe.AdaGradSolver(small.settings("SGD"))
    with pytest.raises(SolverError, match="from a int"):
        caffe.get_solver(7)


def test_net_spec():
    from sparknet.caffe import layers as L

    n = caffe.NetSpec()
    n.x = L.Input(shape={"dim": [4, 3]})
    n.t = L.Input(shape={"dim": [4, 2]})
    n.y = L.InnerProduct(n.x, num_output=2, weight_filler={"type": "xavier"})
    n.loss = L.EuclideanLoss(n.y, n.t)
    solver = caffe.get_solver(small.settings(), net=n)
    small.train(solver, 2)
    assert solver.net._layer_names == ["x", "t", "y", "loss"]
    assert solver.iter == 2


def test_pycaffes_solvers_are_found_by_type():
    names = [name for name in caffe.pycaffe.__all__ if name.endswith("Solver")]
    assert len(names) == 6
    for name in names:
        made = SOLVERS[name.removesuffix("Solver")]
        assert getattr(caffe, name) is made
        assert issubclass(made, caffe.SGDSolver)
    assert set(SOLVERS) == set(SOLVER_TYPES)
    with pytest.raises(TypeError):
        Solver("file")


def test_callbacks_come_at_their_moments():
    solver, seen = small.make_solver("SGD", "iter_size: 2"), []
    diffs = np.asarray(solver.net.flat_diffs)
    small.feed(solver, 0)
    solver.add_callback(
        lambda: seen.append(("start", solver.iter, bool(diffs.any()))),
        lambda: seen.append(("gradients", solver.iter, bool(diffs.any()))),
    )
    solver.step(2)
    assert seen == [
        ("start", 0, False),
        ("gradients", 0, True),
        ("start", 1, False),
        ("gradients", 1, True),
    ]


def test_a_callback_may_change_the_rate():
    solver = small.make_solver("SGD", "momentum: 0")
    small.feed(solver, 0)

    def halt():
        solver.param.base_lr = 0

    solver.add_callback(halt)
    before = small.weights(solver)
    solver.step(1)
    assert np.array_equal(before, small.weights(solver))


def test_display(lines):
    solver = small.make_solver("SGD", "display: 2 max_iter: 4 average_loss: 2 clip_gradients: 0.01")
    small.feed(solver, 0)
    solver.solve()
    text = "\n".join(lines)
    assert "Solving small" in text
    assert "Iteration 0 (0 iter/s, " in text
    assert "    Train net output #0: loss = " in text
    assert "(* 1 = " in text
    assert "Iteration 2, lr = 0.05" in text
    assert "Iteration 1" not in text
    assert "Gradient clipping: scaling down gradients (L2 norm " in text
    assert "Iteration 4, loss = " in text
    assert text.endswith("Optimization Done.")


def test_smoothed_loss():
    loss = SmoothedLoss(3)
    assert [loss.add(value) for value in (3.0, 1.0, 2.0, 6.0, 1.0)] == [3, 2, 2, 3, 3]


TESTS = "test_iter: 3 test_interval: 2"


def test_test_nets_share_at_the_first_test(lines):
    solver = small.make_solver("SGD", TESTS + " test_initialization: false test_compute_loss: true")
    (net,) = solver.test_nets
    small.train(solver, 2)
    assert not np.array_equal(net.params["ip1"][0].data, solver.net.params["ip1"][0].data)
    assert not any("Testing" in line for line in lines)
    small.train(solver, 1)
    assert np.shares_memory(net.params["ip1"][0].data, solver.net.params["ip1"][0].data)
    assert "Iteration 2, Testing net (#0)" in list(lines)
    assert any(line.startswith("Test loss: ") for line in lines)
    net.blobs["x"].data[...] = solver.net.blobs["x"].data
    net.blobs["t"].data[...] = solver.net.blobs["t"].data
    assert solver.test()["loss"] == pytest.approx(solver._forward(), rel=1e-6)


def test_initial_test(lines):
    solver = small.make_solver("SGD", TESTS)
    solver.step(1)
    assert "Iteration 0, Testing net (#0)" in list(lines)


def test_share_weights():
    solver = small.make_solver()
    net = caffe.Net.from_proto(parse_net(small.NET), caffe.TEST)
    solver.share_weights(net)
    small.train(solver, 2)
    assert np.array_equal(net.params["ip2"][0].data, solver.net.params["ip2"][0].data)


def test_the_trained_net_may_use_other_memory():
    """Parameters that lie in another net's buffer, at other places, are trained there."""
    plain, sharing = small.make_solver(), small.make_solver()
    extra = 'layer { name: "more" type: "InnerProduct" bottom: "x" top: "z" inner_product_param'
    first = small.NET.replace(
        'layer { name: "ip1"', extra + ' { num_output: 2 } }\nlayer { name: "ip1"', 1
    )
    other = caffe.Net.from_proto(parse_net(first), caffe.TRAIN)
    for name in ("ip1", "ip2"):
        for mine, theirs in zip(plain.net.params[name], other.params[name], strict=True):
            theirs.data[...] = mine.data
    sharing.net.share_with(other)
    small.train(plain, 3)
    small.train(sharing, 3)
    for name in ("ip1", "ip2"):
        for mine, theirs in zip(plain.net.params[name], other.params[name], strict=True):
            assert np.array_equal(mine.data, theirs.data)


def test_seeds():
    assert np.array_equal(small.weights(small.make_solver()), small.weights(small.make_solver()))
    other = small.make_solver("SGD", "random_seed: 8")
    assert not np.array_equal(small.weights(small.make_solver()), small.weights(other))
    test = small.make_solver("SGD", TESTS).test_nets[0]
    assert not np.array_equal(np.array(test.flat_params), small.weights(small.make_solver()))


def test_interrupted_within_an_iteration():
    solver = small.make_solver()

    def interrupt():
        if solver.iter == 3:
            signal.raise_signal(signal.SIGINT)

    solver.add_callback(None, interrupt)
    with pytest.raises(KeyboardInterrupt):
        solver.step(1_000_000_000)
    assert solver.iter == 3
    solver._callbacks.clear()
    solver.step(1)
    assert solver.iter == 4


@pytest.mark.parametrize("call", ["take", "gradient_norm"])
def test_interrupted_in_the_update(call, monkeypatch):
    """The weights and the count agree: both are updated, or neither is."""
    solver = small.make_solver("SGD", "clip_gradients: 1")
    small.feed(solver, 0)
    owner = Flat if call == "gradient_norm" else type(solver._flat._step)
    before, original = small.weights(solver), getattr(owner, call)

    def interrupted(*args, **numbers):
        original(*args, **numbers)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.step(1)
    assert solver.iter == (1 if call == "take" else 0)
    assert np.array_equal(before, small.weights(solver)) == (solver.iter == 0)


def test_training_goes_on_after_nan():
    solver = small.make_solver()
    small.feed(solver, 0)
    solver.net.blobs["t"].data[...] = np.nan
    solver.step(2)
    assert solver.iter == 2
    assert np.isnan(small.weights(solver)).any()


SCRIPT = """
from tests.caffe.solvers import small
small.make_solver("SGD", "display: 1").step(1)
"""


@pytest.mark.parametrize("level", ["", "2"])
def test_shown_on_stderr_as_glog_would(level):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env={**os.environ, "GLOG_minloglevel": level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert ("Iteration 0, lr = 0.05" in done.stderr) == (level == "")


PYTORCH = {
    "lr_policy: 'onecycle' max_iter: 20": (  # OneCycleLR(0.4, total_steps=20)
        "0.016 0.052668737 0.148668737 0.267331263 0.363331263 0.4 0.394985602 0.380193853 "
        "0.356366471 0.324698262 0.286777201 0.244504809 0.2000008 0.155496791 0.113224399 "
        "0.075303338 0.043635129 0.019807747 0.005015998"
    ),
    # pct_start=0.25, div_factor=8, final_div_factor=5
    "lr_policy: 'onecycle' max_iter: 20 warmup_iter: 5 warmup_start_lr: 0.05 min_lr: 0.01": (
        "0.05 0.101256313 0.225 0.348743687 0.4 0.395738782 0.383141364 0.362758314 0.335480468 "
        "0.3025 0.265258314 0.22538305 0.18461695 0.144741686 0.1075 0.074519532 0.047241686 "
        "0.026858636 0.014261218"
    ),
    "lr_policy: 'cosine' max_iter: 12 min_lr: 0.05": (  # CosineAnnealingLR(12, 0.05)
        "0.4 0.39403702 0.376554446 0.348743687 0.3125 0.270293333 0.225 0.179706667 0.1375 "
        "0.101256313 0.073445554 0.05596298 0.05"
    ),
    # LinearLR(0.25, 1, 4), then CosineAnnealingLR(8)
    "lr_policy: 'cosine' max_iter: 12 warmup_iter: 4 warmup_start_lr: 0.1": (
        "0.1 0.175 0.25 0.325 0.4 0.384775907 0.341421356 0.276536686 0.2 0.123463314 0.058578644 "
        "0.015224093"
    ),
}


@pytest.mark.parametrize("text", PYTORCH)
def test_rates_as_pytorch_has_them(text):
    solver = parse_solver(f"base_lr: 0.4 {text}")
    check_step(solver)
    expected = [float(one) for one in PYTORCH[text].split()]
    actual = [learning_rate(solver, iteration, 0) for iteration in range(len(expected))]
    np.testing.assert_allclose(actual, expected, rtol=2e-6)


@pytest.mark.parametrize("policy", ["cosine", "onecycle"])
def test_behind_the_end_and_without_one(policy):
    solver = parse_solver(f"base_lr: 0.4 lr_policy: '{policy}' max_iter: 9 min_lr: 0.1")
    assert learning_rate(solver, 9, 0) == learning_rate(solver, 99, 0) == np.float32(0.1)
    solver.max_iter = 1
    assert np.isfinite(learning_rate(solver, 0, 0))
    solver.max_iter = 0
    with pytest.raises(SolverError, match=f"max_iter is 0, but lr_policy '{policy}' ends there"):
        check_step(solver)
