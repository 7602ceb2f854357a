"""What must be refused: an exception at the recorded step at the latest, which names the place."""

import shutil
from typing import Any

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import SparkNetError
from tests.goldens import GOLDENS, cases

Case = dict[str, Any]


def _net(case):
    return caffe.Net(case["file"], getattr(caffe, case["phase"]))


def _forward(case):
    net = _net(case)
    for name in net.inputs:
        net.blobs[name].data[...] = case.get("values", {}).get(name, 0.5)
    net.forward()
    return net


def _reshape(case: Case) -> None:
    net = _net(case)
    for name, shape in case["new_shapes"].items():
        net.blobs[name].reshape(*shape)
    net.reshape()


def _call(case: Case) -> None:
    known = {"net": _net(case), "caffe": caffe, "numpy": np, "path": case["file"]}
    exec(case["call"], known)


ACTIONS = {
    "net": _net,
    "forward": _forward,
    "backward": lambda case: _forward(case).backward(),
    "reshape": _reshape,
    "copy": lambda case: _net(case).copy_from(case["weights"]),
    "call": _call,
    "solver": lambda case: caffe.get_solver(case["file"]),
    "step": lambda case: caffe.get_solver(case["file"]).step(1),
    "restore": lambda case: caffe.get_solver(case["file"]).restore(case["state"]),
}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """A copy to work in: opening a database leaves lock files beside it."""
    copy = tmp_path_factory.mktemp("goldens")
    for name in ("errors", "data"):
        shutil.copytree(GOLDENS / name, copy / name)
    return copy / "errors"


@cases("errors")
def test_refused(case, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    error = _raised(case)
    if error is None:
        assert "optional" in case, f"{case['what']}: nothing was refused"
        return
    # Ours, unless numpy refuses what is put into a view.
    assert isinstance(error, SparkNetError) or case["action"] == "call", repr(error)
    message = str(error)
    assert message.strip()
    assert "\n" not in message
    assert "the engine has no such layer" not in message
    for name in (case.get("layer"), case.get("blob")):
        assert name is None or name in message, f"{name!r} is not in {message!r}"


def _raised(case: Case) -> Exception | None:
    try:
        ACTIONS[case["action"]](case)
    except Exception as error:
        return error
    return None
