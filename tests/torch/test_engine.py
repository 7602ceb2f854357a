"""The engine of PyTorch beside the native one, on the CPU and with memory kept apart."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.cli import main
from sparknet.devices import APART, resolve_device
from sparknet.errors import LayerError, SpecError
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer

pytestmark = pytest.mark.usefixtures("engine")

NET = (
    input_layer("data", (4, 3, 12, 12))
    + input_layer("label", (4,))
    + """
    layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
      num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
      pooling_param { kernel_size: 3 stride: 2 } }
    layer { name: "relu" type: "ReLU" bottom: "pool" top: "pool" }
    layer { name: "wide" type: "InnerProduct" bottom: "pool" top: "wide" inner_product_param {
      num_output: 50 weight_filler { type: "xavier" } } }
    layer { name: "drop" type: "Dropout" bottom: "wide" top: "wide" }
    layer { name: "ip" type: "InnerProduct" bottom: "wide" top: "ip" inner_product_param {
      num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
)


@pytest.fixture
def engine(monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.delenv("SPARKNET_ENGINE", raising=False)
    monkeypatch.delenv("SPARKNET_DEVICE", raising=False)


def build(monkeypatch, device, text=NET, **kwargs):
    for name in ("SPARKNET_ENGINE", "SPARKNET_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    if device is not None:
        monkeypatch.setenv("SPARKNET_ENGINE", "torch")
        monkeypatch.setenv("SPARKNET_DEVICE", device)
    return caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=7, **kwargs)


def passes(net):
    """Two passes of the same net: what they leave."""
    rng = np.random.default_rng(0)
    for _ in range(2):
        net.blobs["data"].data[...] = rng.normal(size=net.blobs["data"].shape)
        net.blobs["label"].data[...] = rng.integers(0, 5, 4)
        net.clear_param_diffs()
        net.forward()
        net.backward()
    found = {name: np.array(blob.data) for name, blob in net.blobs.items()}
    found |= {f"{name} diff": np.array(blob.diff) for name, blob in net.blobs.items()}
    found["diffs"] = np.array(net.flat_diffs)
    return found


@pytest.mark.parametrize("device", ["cpu", APART])
def test_both_engines_leave_the_same(device, monkeypatch):
    """Dropout's masks as well: values in rows draw the same random numbers."""
    want = passes(build(monkeypatch, None))
    got = passes(build(monkeypatch, device))
    assert 50 < np.count_nonzero(want["wide"] == 0) < 150
    for name, values in want.items():
        np.testing.assert_allclose(got[name], values, rtol=2e-4, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("device", ["cpu", APART])
def test_reruns_leave_the_same_bits(device, monkeypatch):
    one, other = (passes(build(monkeypatch, device)) for _ in range(2))
    for name, values in one.items():
        assert np.array_equal(values, other[name]), name


def test_views_follow_the_passes_on_the_cpu(monkeypatch):
    net = build(monkeypatch, "cpu")
    seen = {name: blob.data for name, blob in net.blobs.items()}
    diffs = {name: blob.diff for name, blob in net.blobs.items()}
    passes(net)
    for name, blob in net.blobs.items():
        assert seen[name] is blob.data
        assert diffs[name] is blob.diff
    assert seen["conv"].any()
    assert diffs["conv"].any()


def test_a_view_of_another_device_is_brought_up_to_date_when_it_is_asked_for(monkeypatch):
    """Caffe: syncedmem.cpp."""
    net = build(monkeypatch, APART)
    before = np.array(net.blobs["ip"].data)
    net.blobs["data"].data[...] = 1
    net.forward()
    first = np.array(net.blobs["ip"].data)
    net.params["ip"][1].data[...] += 2
    net.forward(start="ip")
    assert not before.any()
    np.testing.assert_allclose(net.blobs["ip"].data, first + 2, rtol=1e-5)


def test_a_layer_without_a_translation_runs_in_the_native_engine(monkeypatch):
    text = input_layer("x", (1, 4, 2, 2)) + (
        'layer { name: "l" type: "Reorg" bottom: "x" top: "y" reorg_param { stride: 2 } }'
        'layer { name: "m" type: "Power" bottom: "y" top: "z" power_param { scale: 2 } }'
    )
    x = np.linspace(-2, 2, 16, dtype=np.float32).reshape(1, 4, 2, 2)
    cells = x.reshape(1, 2, 2, 2, 2).transpose(0, 2, 4, 1, 3).reshape(1, 16, 1, 1)
    for device in ("cpu", APART):
        told = r"PyTorch does not compute a layer, which the native .* on the CPU: 'l' \(Reorg\)"
        with pytest.warns(UserWarning, match=told):
            net = build(monkeypatch, device, "force_backward: true\n" + text)
        assert net._runtime.engine.fallbacks() == {"l": "Reorg"}
        net.forward(x=x)
        np.testing.assert_array_equal(net.blobs["z"].data, 2 * cells)
        net.blobs["z"].diff[...] = cells
        net.backward()
        np.testing.assert_array_equal(net.blobs["x"].diff, 2 * x)


def test_gone_wrong(monkeypatch):
    monkeypatch.setenv("SPARKNET_ENGINE", "tf")
    with pytest.raises(SpecError, match=r"SPARKNET_ENGINE must be 'native' or 'torch'; it is 'tf'"):
        resolve_device(None)
    net = build(monkeypatch, "cpu")
    net.blobs["label"].data[...] = 9
    with pytest.raises(LayerError, match="SoftmaxWithLoss: label 9 is out of range: there are 5"):
        net.forward()
    with pytest.raises(SpecError, match="precision='int8' is the native engine's"):
        build(monkeypatch, "cpu", precision="int8")
    with pytest.raises(SpecError, match=r"there is no device 'cuda:9': PyTorch sees"):
        build(monkeypatch, "cuda:9")
    with pytest.raises(SpecError, match=r"device must be .* it is 'toaster'"):
        build(monkeypatch, "toaster")


def test_sparknet_imports_no_torch():
    code = "import sys, sparknet, sparknet.caffe as c; c.Net; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


MIXED = (
    NET.replace('"Dropout"', '"BN" bn_param { frozen: true }')
    + """
    layer { name: "own" type: "Python" bottom: "ip" top: "own"
      python_param { module: "tests.caffe.user_layers" layer: "TimesTen" } }
    layer { name: "prior" type: "PriorBox" bottom: "conv" bottom: "data" top: "prior"
      prior_box_param { min_size: 4 } }
"""
)
TOLD = (
    "PyTorch does not compute 2 layers, which the native engine does on the CPU: "
    "'drop' (BN), 'prior' (PriorBox)"
)


def test_show_names_what_torch_does_not_compute(tmp_path, capsys):
    """Layers in Python are no engine's."""
    net = tmp_path / "net.prototxt"
    net.write_text(NET)
    assert main(["show", "--engine", "torch", str(net)]) == 0
    assert capsys.readouterr().out.endswith("PyTorch computes all layers\n")
    net.write_text(MIXED)
    assert main(["show", "--engine", "torch", str(net)]) == 0
    assert capsys.readouterr().out.endswith(f"{TOLD}\n")
    assert main(["show", "--engine", "torch", "--json", str(net)]) == 0
    told = json.loads(capsys.readouterr().out)["untranslated"]
    assert told == {"drop": "BN", "prior": "PriorBox"}
    assert main(["show", "--json", str(net)]) == 0
    assert "untranslated" not in json.loads(capsys.readouterr().out)


def test_a_warning_names_them_where_the_program_makes_the_net(monkeypatch):
    with pytest.warns(UserWarning, match=re.escape(TOLD)) as caught:
        net = build(monkeypatch, "cpu", MIXED)
    assert [Path(one.filename).name for one in caught] == ["test_engine.py"]
    native = build(monkeypatch, None, MIXED)
    for one in (net, native):
        one.blobs["data"].data[...] = np.random.default_rng(0).normal(size=(4, 3, 12, 12))
        one.forward()
    for name in ("wide", "own", "prior"):
        want = native.blobs[name].data
        np.testing.assert_allclose(net.blobs[name].data, want, rtol=1e-4, atol=1e-5)
