"""The default engine, with PyTorch and without."""

import sys
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

import sparknet
from sparknet import devices
from sparknet.errors import MissingExtra


@pytest.mark.parametrize(
    ("onednn", "torch", "settings", "device"),
    [
        ("3.2.0", True, {}, None),
        ("3.2.0", True, {"SPARKNET_DEVICE": "cuda:1"}, "cuda:1"),
        ("none", False, {}, None),
        ("none", True, {}, "cpu"),
        ("none", True, {"SPARKNET_DEVICE": "mps"}, "mps"),
        ("none", True, {"SPARKNET_ENGINE": "native"}, None),
        ("none", False, {"SPARKNET_ENGINE": "torch"}, "cpu"),
    ],
)
def test_pytorch_computes_where_the_build_has_no_onednn(
    onednn, torch, settings, device, monkeypatch
):
    for name in ("SPARKNET_ENGINE", "SPARKNET_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(devices, "_onednn", [lambda: onednn != "none"])
    spec = ModuleSpec("torch", None) if torch else None
    monkeypatch.setattr(devices, "find_spec", lambda name: spec)
    assert devices.resolve_device(None) == device
    assert devices.resolve_device("cpu") == "cpu"


def test_without_pytorch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    data = {"data": np.zeros((8, 2), np.float32)}
    with pytest.raises(MissingExtra, match=r"run pip install 'sparknet\[torch\]'$"):
        sparknet.train("no.prototxt", data, device="cpu", steps=1)
