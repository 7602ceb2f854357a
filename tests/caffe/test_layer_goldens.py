"""Every layer case of the reference vectors: structure, values, loss, gradients."""

import numpy as np

import sparknet.caffe as caffe
from tests.caffe.replay import check_structure, play
from tests.goldens import GOLDENS, cases


@cases("layers")
def test_layer(case, monkeypatch):
    monkeypatch.chdir(GOLDENS / "layers")
    monkeypatch.syspath_prepend(str(GOLDENS / "layers"))
    net = caffe.Net(f"{case['name']}.prototxt", getattr(caffe, case["phase"]))
    check_structure(case, net)
    play(case, net, np.load(f"{case['name']}.npz"))
