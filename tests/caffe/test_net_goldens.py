"""Whole architectures of the reference vectors: values, gradients, five training steps."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from tests.caffe.replay import check_structure, close, keys, param, play, set_params, total_loss
from tests.goldens import GOLDENS, cases, index


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    monkeypatch.chdir(GOLDENS / "nets")


@cases("nets")
def test_net(case):
    net = caffe.Net(f"{case['name']}.prototxt", getattr(caffe, case["phase"]))
    check_structure(case, net)
    with np.load(f"{case['name']}.npz") as arrays:
        recorded = dict(arrays)
    gradients = any(key.split("/")[0] in ("diff", "pdiff") for key in recorded)
    play({**case, "backward": gradients}, net, recorded)


@cases("nets", [case for case in index("nets") if case["train_steps"]])
def test_training(case):
    solver = caffe.get_solver(f"{case['name']}.solver.prototxt")
    with np.load(f"{case['name']}.npz") as arrays:
        recorded = dict(arrays)
    set_params(solver.net, recorded)
    for step in range(case["train_steps"]):
        for blob, values in keys(recorded, "train/in/"):
            solver.net.blobs[blob].data[...] = values[step]
        solver.step(1)
        loss = total_loss(solver.net)
        close(case, loss, recorded["train/loss"][step], f"loss of step {step}")
    for key, want in keys(recorded, "train/param/"):
        close(case, param(solver.net, key).data, want, f"train/param/{key}")
