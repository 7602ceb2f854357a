import shutil

import numpy as np
import pytest

from sparknet.cli import main
from sparknet.proto import caffe_pb2, read_model, read_text
from tests.goldens import GOLDENS, index

UPGRADE = GOLDENS / "formats" / "upgrade"


@pytest.mark.parametrize("case", index("formats/upgrade"), ids=lambda case: case["name"])
def test_as_the_upgrade_tools(case, tmp_path, capsys):
    name, out = case["name"], tmp_path / "out.prototxt"
    status = main(["upgrade", str(UPGRADE / f"{name}.in.prototxt"), str(out)])
    message = getattr(caffe_pb2, str(case["message"]))
    assert read_text(out, message) == read_text(UPGRADE / f"{name}.out.prototxt", message)
    clean = case.get("clean", True)
    assert status == (0 if clean else 1)
    assert (capsys.readouterr().err == "") == clean


@pytest.mark.parametrize("name", ["v0_model", "v1_legacy_shapes", "v1_new_shapes"])
def test_models(name, tmp_path):
    binary, out = GOLDENS / "formats" / "binary", tmp_path / "out.caffemodel"
    shutil.copy(binary / f"{name}.caffemodel", out)
    assert main(["upgrade", str(out), str(out)]) == 0
    got, want = read_model(out), read_model(binary / f"{name}.upgraded.caffemodel")
    assert got.net == want.net
    for ours, theirs in zip(got.arrays, want.arrays, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a is not None
            assert b is not None
            assert np.array_equal(a, b)


def test_what_is_neither(tmp_path, capsys):
    bad, out = tmp_path / "bad.prototxt", tmp_path / "out.prototxt"
    bad.write_text("base_lr: 0.1\nmax_itr: 3\n")
    assert main(["upgrade", str(bad), str(out)]) == 1
    error = capsys.readouterr().err
    assert "bad.prototxt:2:" in error
    assert "max_itr" in error
    assert not out.exists()


def test_the_kind_can_be_said(tmp_path):
    empty, out = tmp_path / "empty.prototxt", tmp_path / "out.prototxt"
    empty.write_text('type: "SGD"')
    assert main(["upgrade", "--kind", "solver", str(empty), str(out)]) == 0
    assert read_text(out, caffe_pb2.SolverParameter).type == "SGD"
