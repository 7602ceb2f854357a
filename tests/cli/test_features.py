"""`sparknet features`."""

from pathlib import Path

import numpy as np
import pytest

from sparknet.cli import main
from sparknet.loaders.datums import parse_datum
from sparknet.loaders.lmdb import LMDB
from tests.cli.conftest import Task


def words(task: Task, blobs: str, out: Path | str, *more: str) -> list[str]:
    model = ["-model", task.path("net.prototxt"), "-weights", task.path("model.caffemodel")]
    return ["features", *model, "-blobs", blobs, "-out", str(out), *more]


def expected(task):
    """The scores of all images, in order, as a pycaffe script would find them."""
    from sparknet import caffe

    net = caffe.Net(task.path("net.prototxt"), task.path("model.caffemodel"), caffe.TEST)
    return np.concatenate([net.forward(blobs=["ip"])["ip"].copy() for _ in range(3)])


def test_lmdb_of_the_nets_own_data(task, run, tmp_path):
    done = run(*words(task, "ip", tmp_path / "ip_lmdb", "-iterations", "3"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == f"{tmp_path}/ip_lmdb: 60 records of ip\n"
    database = LMDB(str(tmp_path / "ip_lmdb"))
    found = [(key, parse_datum(value, "x", key)) for key, value in database]
    database.close()
    assert [key for key, _ in found] == [b"%010d" % number for number in range(60)]
    assert (found[0][1].channels, found[0][1].height, found[0][1].width) == (3, 1, 1)
    np.testing.assert_allclose(
        [datum.float_data for _, datum in found], expected(task), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("kind", ["npy", "npz", "h5"])
def test_files_of_given_records(kind, task, tmp_path):
    out = tmp_path / f"features.{kind}"
    blobs = "ip" if kind == "npy" else "ip,data"
    assert main(words(task, blobs, out, task.path("lmdb"), "--batch", "7")) == 0
    if kind == "npy":
        found = {"ip": np.load(out)}
    elif kind == "npz":
        found = dict(np.load(out))
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(out) as file:
            found = {name: values[:] for name, values in file.items()}
    np.testing.assert_allclose(found["ip"], expected(task), rtol=1e-5, atol=1e-6)
    if kind != "npy":
        np.testing.assert_allclose(found["data"], task.images / 256)


def test_a_file_for_each_blob(task, tmp_path):
    outs = f"{tmp_path}/a.npy,{tmp_path}/b_lmdb"
    assert main(words(task, "data,ip", outs, "-iterations", "1")) == 0
    assert np.load(tmp_path / "a.npy").shape == (20, 1, 6, 6)
    database = LMDB(f"{tmp_path}/b_lmdb")
    assert len(database) == 20
    database.close()


def test_nothing_half_written(task, capsys, tmp_path):
    outs = [f"{tmp_path}/a.npz", f"{tmp_path}/a.h5", f"{tmp_path}/a_lmdb", f"{tmp_path}/a.npy"]
    for out in outs:
        assert main(words(task, "nothing", out, "-iterations", "1")) == 1
        err = capsys.readouterr().err
        assert err.startswith("sparknet features: the net has no blob 'nothing'; there are 'data'")
        assert main(words(task, "loss", out, "-iterations", "1")) == 1
        assert "'loss' is ()" in capsys.readouterr().err
        assert main(words(task, "ip", out, f"{tmp_path}/none.png")) == 1
        assert "no input that could be read" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_refusals(task, capsys, tmp_path):
    assert main(words(task, "ip", tmp_path / "x.npy")) == 2
    assert "-iterations" in capsys.readouterr().err
    assert main(words(task, "ip,data", tmp_path / "x.npy", "-iterations=1")) == 2
    assert "2 blobs need as many files" in capsys.readouterr().err
    assert main(words(task, "ip", tmp_path, "-iterations=1")) == 0
    assert main(words(task, "ip", tmp_path, "-iterations=1")) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["features", "-model", task.path("net.prototxt")]) == 2
    assert capsys.readouterr().err == "sparknet features: give --outputs\n"
