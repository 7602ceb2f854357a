"""The recorded nets of Caffe as ONNX models: what onnxruntime computes, and what is read again."""

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.caffe.weights_io import as_model, copy_model
from sparknet.errors import SparkNetError
from sparknet.onnx import read_model, write_model
from sparknet.onnx.onnxruntime_check import largest_difference, results
from tests.caffe.replay import set_inputs, set_params
from tests.goldens import GOLDENS, index
from tests.onnx.graphs import run

CASES = [(suite, case["name"]) for suite in ("layers", "nets") for case in index(suite)]
LEFT_OUT = {
    "nothing is left of the net without its losses": (
        *("softmax_loss_*", "sigmoid_ce_*", "infogain_[fiw]*", "euclidean_*", "hinge_*"),
        *("multinomial_*", "contrastive_*", "accuracy_*", "loss_weight_zero"),
        *("split_three", "dummy_*"),  # no layer computes anything
    ),
    "layer 'l': Filter: ONNX has no operator for it": ("filter_*",),
    "layer 'l': Python: ONNX cannot run Python code": ("python_*",),
    "a convolution without spatial axes is not written": ("conv_0d",),
    "a window that lies in the padding alone has no operator": ("pool_max_empty_window",),
    "the places of its maxima are read, which ONNX counts otherwise": ("pool_max_mask",),
}
"""Cases that ONNX cannot hold, by the sentence that says so."""


def reason(name: str) -> str | None:
    return next(
        (says for says, names in LEFT_OUT.items() if any(fnmatch(name, one) for one in names)), None
    )


def test_how_many_are_left_out():
    reasons = [reason(name) for _, name in CASES]
    counts = {says: reasons.count(says) for says in LEFT_OUT}
    assert list(counts.values()) == [69, 4, 3, 1, 1, 1]
    assert reasons.count(None) == len(CASES) - 79 == 408


@pytest.mark.filterwarnings("ignore::sparknet.onnx.OnnxWarning")
@pytest.mark.parametrize(("suite", "name"), CASES, ids=[name for _, name in CASES])
def test_there_and_back(suite, name, tmp_path, monkeypatch):
    monkeypatch.chdir(GOLDENS / suite)  # paths in the files are relative
    monkeypatch.syspath_prepend(str(GOLDENS / suite))
    monkeypatch.setitem(sys.modules, "caffe", caffe)
    net = caffe.Net(f"{name}.prototxt", caffe.TEST)
    with np.load(f"{name}.npz") as file:
        arrays = dict(file)
    set_params(net, arrays)
    set_inputs(net, arrays, "in/")
    says = reason(name)
    if says is None:
        there_and_back(net, tmp_path / "net.onnx")
        return
    with pytest.raises(SparkNetError, match=re.escape(says)):
        there_and_back(net, tmp_path / "net.onnx")


def there_and_back(net, path):
    """Compare a net with its model in onnxruntime, and with the net that is read from that."""
    feeds = {name: np.array(net.blobs[name].data) for name in net.inputs}
    write_model(path, as_model(net._runtime))
    net.forward()
    want = run(path, {name: feeds[name] for name in _inputs(path)})
    got = results(net.blobs, want)
    assert largest_difference(got, want) <= 1e-4
    model = read_model(path)
    again = caffe.Net.from_proto(model.net, caffe.TEST)
    copy_model(again._runtime, model)
    for name in again.inputs:
        again.blobs[name].reshape(*feeds[name].shape)
    again.reshape()
    for name in again.inputs:
        again.blobs[name].data[...] = feeds[name]
    again.forward()
    assert largest_difference(results(again.blobs, want), got) <= 1e-5


def _inputs(path: Path) -> list[str]:
    from tests.onnx.graphs import onnx

    return [one.name for one in onnx.load(str(path)).graph.input]
