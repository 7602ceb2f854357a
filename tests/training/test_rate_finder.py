"""find_lr: against the rate at which steps on a quadratic are known to diverge."""

import numpy as np
import pytest

import sparknet
from sparknet import Net, SolverParams
from sparknet.errors import Diverged, FileError, SettingError, SpecError
from sparknet.training import observers

LINE = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [64, 6] } } }
layer { name: "t" type: "Input" top: "t" input_param { shape { dim: [64, 1] } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 1 bias_term: false } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "t" top: "loss" }
"""
SOLVER = f"net_param {{ {LINE} }} base_lr: 5 lr_policy: 'step' stepsize: 3 gamma: 0.1 "
SOLVER += "warmup_iter: 50 warmup_start_lr: 1 min_lr: 0.5 random_seed: 1"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(640, 6)) * [3, 2, 1, 1, 0.5, 0.2]).astype(np.float32)
    return {"x": x, "t": (x @ rng.normal(size=(6, 1))).astype(np.float32)}


def test_the_curve_of_a_quadratic(data, tmp_path):
    found = sparknet.find_lr(SOLVER, data, low=1e-4, high=100, steps=120, seed=1)
    # Steps on a quadratic diverge above 2 / its largest curvature, and not below.
    limit = 2 / float(np.linalg.eigvalsh(data["x"].T @ data["x"] / len(data["x"]))[-1])
    assert found.rates[0] == pytest.approx(1e-4)
    assert 0.7 * limit < found.rates[-1] < 4 * limit
    assert len(found.rates) == len(found.losses) < 120
    assert found.suggestion is not None
    assert limit / 50 < found.suggestion < limit
    best = int(np.argmin(found.smoothed))
    assert found.suggestion < found.rates[best]
    assert found.losses[0] == pytest.approx(
        float((data["t"] ** 2).mean() / 2), rel=0.5
    )  # weights begin at 0
    found.plot(tmp_path / "lr.svg")
    drawn = (tmp_path / "lr.svg").read_text()
    assert drawn == found._repr_html_()
    assert f"falls fastest at {found.suggestion:.2g}" in drawn
    with pytest.raises(FileError, match="a plot's name ends in"):
        found.plot(tmp_path / "lr.txt")
    assert repr(found).startswith(f"<RateCurve: {len(found.rates)} steps up to ")


def test_the_suggestion_trains(data):
    rate = sparknet.find_lr(SOLVER, data, low=1e-4, high=100, seed=1).suggestion
    solver = SolverParams.from_text(SOLVER).but(
        base_lr=rate, lr_policy="fixed", warmup_iter=None, warmup_start_lr=None, min_lr=None
    )
    net = Net(solver)
    net.set_training_data(data)
    first = net.train(1)
    net.train(40)
    assert net.train(10) < first / 5


def test_a_net_that_is_given_stays(data):
    net = Net(SOLVER)
    net.set_training_data(data)
    before = net.get_weights()
    found = sparknet.find_lr(net, data, low=1e-4, high=100, steps=20, workers=2)
    assert net.settings is not None
    assert (net.settings.lr_policy, net.settings.base_lr) == ("step", 5)
    assert np.array_equal(np.asarray(before.flat), np.asarray(net.get_weights().flat))
    assert len(found.losses) >= 10
    solver = SolverParams.from_text(SOLVER)
    sparknet.find_lr(solver, data, low=1e-4, high=1e-3, steps=10)
    assert solver.lr_policy == "step"


def test_settings_are_those_of_train_and_no_observer_hears(data):
    class Ear(observers.Observer):
        def __init__(self) -> None:
            raise AssertionError("a measurement is no training")

        hear = done = failed = None

    observers.observe(Ear)
    try:
        fast = {"low": 1e-4, "high": 1e-3, "steps": 10, "seed": 1}
        plain = sparknet.find_lr(SOLVER, data, **fast)
        scaled = sparknet.find_lr(SOLVER, data, shuffle=False, precision="float32", **fast)
        assert plain.losses != scaled.losses  # in the stored order
        with pytest.raises(SettingError, match="deadline"):
            sparknet.find_lr(SOLVER, data, deadline=-1, **fast)
        with pytest.raises(SettingError, match="ports"):
            sparknet.find_lr(SOLVER, data, ports=[99999999], **fast)
    finally:
        observers.forget(Ear)


WRONG = {
    "order": ({"low": 1.0, "high": 0.1}, SettingError, "low is 1 and high 0.1: 0 < low < high"),
    "few": ({"steps": 3}, SettingError, "steps is 3: a whole number, at least 10, is needed"),
    "own": ({"epochs": 3}, SettingError, "find_lr takes no epochs: it decides that itself"),
    "name": ({"worker": 3}, SpecError, "there is no keyword 'worker'; did you mean 'workers'?"),
    "high": ({"low": 50.0, "high": 500.0}, Diverged, "from the learning rate 50 on: give a sm"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings(name, data):
    settings, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        sparknet.find_lr(SOLVER, data, **settings)
