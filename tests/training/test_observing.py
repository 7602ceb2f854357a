"""Observers hear each training of a process, from its begin to its end."""

import sys

import numpy as np
import pytest

import sparknet
from sparknet.errors import Diverged
from sparknet.report import Progress
from sparknet.training import observers
from sparknet.training.history import Event
from sparknet.training.progress import LineProgress

SOLVER = """
net_param {
  layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [8, 2] } } }
  layer { name: "t" type: "Input" top: "t" input_param { shape { dim: [8, 1] } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
    inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "t" top: "loss" }
}
base_lr: 0.1 lr_policy: "fixed" random_seed: 1
"""
heard = []


class Ear(observers.Observer):
    def __init__(self) -> None:
        heard.append("begin")

    def hear(self, event: Event) -> None:
        heard.append(event["event"])

    def done(self, trained):
        heard.append(trained)

    def failed(self) -> None:
        heard.append("failed")


def test_a_terminal_shows_a_bar(monkeypatch):
    assert isinstance(observers.listener(None), LineProgress)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert type(observers.listener(None)) is Progress
    with observers.unheard():
        assert observers.listener(None) is None


@pytest.fixture(autouse=True)
def ear():
    heard.clear()
    observers.observe(Ear)
    yield
    observers.forget(Ear)


def data(scale=1):
    x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32) * scale
    return {"x": x, "t": x[:, :1]}


def test_a_training_and_its_result():
    trained = sparknet.train(SOLVER, data(), steps=20)
    assert heard[0] == "begin"
    assert "start" in heard
    assert heard[-2] == "stop"
    assert heard[-1] is trained
    assert heard.count("round") == len(trained.history.of_kind("round"))
    observers.forget(Ear)
    heard.clear()
    sparknet.train(SOLVER, data(), steps=2)
    assert not heard


def test_a_training_that_fails():
    with pytest.raises(Diverged):
        sparknet.train(SOLVER, data(1e18), steps=200)
    assert heard[0] == "begin"
    assert heard[-1] == "failed"
    assert heard.count("failed") == 1


def test_a_script_says_little(caplog):
    """It was silent: hours of training looked like a program that hangs."""
    with caplog.at_level("INFO", "sparknet.training"):
        sparknet.train(SOLVER, data(), steps=20)
    lines = [one.message for one in caplog.records if one.name == "sparknet.training"]
    assert lines[0] == "training a net: 1 worker, averaging, up to 20 steps"
    assert lines[1].startswith("step ")
    assert lines[-1] == "step 20: all steps are done"
    assert len(lines) <= 4
    caplog.clear()
    sparknet.train(SOLVER, data(), steps=20, on_event=lambda event: None)
    assert not [one for one in caplog.records if one.levelname == "INFO"]
