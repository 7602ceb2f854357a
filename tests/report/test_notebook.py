"""The bar of a notebook: one output, drawn again in its place."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import sparknet
from sparknet.report import Progress
from sparknet.training import observers
from sparknet.training.progress import LineProgress
from tests.report.events import TRAINING, round_event
from tests.report.test_progress import Clock

SOLVER = """
base_lr: 0.1 lr_policy: "fixed" random_seed: 1
net_param {
  layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [4, 2] } } }
  layer { name: "t" type: "Input" top: "t" input_param { shape { dim: [4, 1] } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
    inner_product_param { num_output: 1 } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "t" top: "loss" }
}
"""


class Kernel:
    """What IPython shows: the states of each output, as HTML."""

    def __init__(self, monkeypatch, shell):
        self.outputs: list[list[str]] = []
        self.text = ""
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        ipython.get_ipython = lambda: shell
        display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, thing, display_id):
        assert display_id is True
        states: list[str] = []
        self.outputs.append(states)

        def update(thing):
            self.text = repr(thing)
            states.append(thing._repr_html_())

        update(thing)
        return SimpleNamespace(update=update)


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch, SimpleNamespace(kernel=object()))


def test_one_output_is_drawn_again(kernel, capsys):
    clock = Clock()
    progress = Progress(clock=clock)
    for event in TRAINING:
        clock.now += event["event"] == "round"
        progress(event)
    [states] = kernel.outputs
    assert states[0] == (
        '<div><progress max="1" value="0.2500"></progress> '
        "step 10/40 25%, loss 2, 640 samples/s, 25% communicating, eta 0:03</div>"
    )
    assert states[-1] == (
        '<div><progress max="1" value="1.0000"></progress> '
        "step 40/40 100%, loss 0.5, accuracy 0.9, 640 samples/s, 25% communicating, eta 0:00"
        "<br>step 30: validation accuracy 0.9, loss 0.7<br>step 20: snapshot in snapshots/round-2"
        "<br>step 40: all steps are done</div>"
    )
    assert kernel.text.splitlines()[1:] == [
        "step 30: validation accuracy 0.9, loss 0.7",
        "step 20: snapshot in snapshots/round-2",
        "step 40: all steps are done",
    ]
    for event in TRAINING:
        progress(event)
    assert len(kernel.outputs) == 2  # the next training is in a cell of its own
    assert capsys.readouterr() == ("", "")


def test_lines_are_escaped_and_bounded(kernel):
    progress = Progress(clock=Clock())
    progress(round_event(1))
    for number in range(30):
        progress({"event": "note", "iteration": number, "text": f"<b>{number}"})
    last = kernel.outputs[0][-1]
    assert last.count("<br>") == 20
    assert last.endswith("<br>step 29: &lt;b&gt;29</div>")
    assert "step 9:" not in last


def test_a_terminal_is_no_notebook(monkeypatch, capsys):
    kernel = Kernel(monkeypatch, SimpleNamespace())
    for event in TRAINING:
        Progress()(event)
    sparknet.load_ipython_extension(None)
    assert isinstance(observers.listener(None), LineProgress)
    assert not kernel.outputs
    assert "step 30: validation accuracy 0.9, loss 0.7" in capsys.readouterr().err


def test_trainings_are_shown(kernel, capsys):
    data = {"x": np.arange(16.0).reshape(8, 2) / 16, "t": np.ones((8, 1))}
    sparknet.train(SOLVER, data, steps=2)
    [states] = kernel.outputs
    assert "step 2/2 100%" in states[-1]
    assert states[-1].endswith("<br>step 2: all steps are done</div>")
    heard: list[str] = []
    sparknet.train(SOLVER, data, steps=2, on_event=lambda event: heard.append(event["event"]))
    assert heard[-1] == "stop"
    assert len(kernel.outputs) == 1  # who listens shows what he wants
    assert capsys.readouterr().err == ""
