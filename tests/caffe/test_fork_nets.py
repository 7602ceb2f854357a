"""Nets of the shapes of public forks, whole: forward in both phases, and some steps of training."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import caffe
from sparknet.proto import parse_net
from tests.caffe import cascade_nets, detector_nets, fork_nets
from tests.caffe.fork_nets import Writer

MORE = {"RefineDet": detector_nets.refinedet}
TRAINED = {**fork_nets.TRAINED, **MORE}
TESTED = {**fork_nets.TESTED, **MORE, "Cascade R-CNN": cascade_nets.tested}


def feed(net, written):
    for name, value in written.inputs.items():
        net.blobs[name].data[...] = value


@pytest.mark.parametrize("name", TESTED)
def test_forward(name):
    """The same results whether blobs are kept or share memory."""
    written = TESTED[name]()
    results = []
    for keep in (True, False):
        net = caffe.Net.from_proto(parse_net(written.text), caffe.TEST, seed=4, keep_blobs=keep)
        feed(net, written)
        net.forward()
        results.append({top: np.array(net.blobs[top].data) for top in net.outputs})
    assert results[0].keys() == results[1].keys()
    for top, values in results[0].items():
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values, results[1][top], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", TRAINED)
def test_training(name, tmp_path):
    """Every weight of a net that learns changes, and the losses stay numbers."""
    train(TRAINED[name](), tmp_path)


def train(written: Writer, tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(written.text)
    (tmp_path / "solver.prototxt").write_text(
        f'net: "{tmp_path / "net.prototxt"}" base_lr: 0.001 momentum: 0.9 random_seed: 3 '
        'lr_policy: "multifixed" stagelr: 0.001 stageiter: 2 stagelr: 0.0001 stageiter: 9'
    )
    solver = caffe.SGDSolver(str(tmp_path / "solver.prototxt"))
    feed(solver.net, written)
    before = {n: np.array(own[0].data) for n, own in solver.net.params.items()}
    for _ in range(3):
        feed(solver.net, written)
        solver.step(1)
    losses = [float(np.sum(solver.net.blobs[t].data)) for t in solver.net.blob_loss_weights]
    assert np.isfinite(losses).all()
    still = [n for n, own in solver.net.params.items() if (own[0].data == before[n]).all()]
    assert still == []
