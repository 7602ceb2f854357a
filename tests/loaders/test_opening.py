"""One call opens every kind of data set."""

import gzip
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from sparknet import loaders
from sparknet.errors import FileError, SpecError
from sparknet.loaders import ArrayRecords, Chain, open_records, write_blocks
from sparknet.loaders.opening import KINDS, kind_of
from tests.goldens import ROOT
from tests.loaders.test_datums import leveldb, lmdb, plain
from tests.loaders.test_image_files import folder, png, tar
from tests.loaders.test_mnist import write_mnist

IMAGE = np.zeros((1, 2, 2), np.uint8)


def sample(kind: str, path: Path) -> list[Path]:
    """A data set of two records, without a telling name."""
    if kind == "blocks":
        write_blocks(path, ArrayRecords(data=[1, 2]))
    elif kind == "hdf5":
        with h5py.File(path, "w") as file:
            file["data"] = [1, 2]
    elif kind == "hdf5 list":
        sample("hdf5", path.with_suffix(".h5"))
        path.write_text(f"{path.with_suffix('.h5')}\n")
    elif kind == "image list":
        folder(path.parent, {"a.png": png(1)})
        path.write_text(f"{path.parent}/a.png 1\n" * 2)
    elif kind == "images":
        folder(path, {"a/0.png": png(1), "b/1.png": png(1)})
    elif kind == "numpy":
        with path.open("wb") as file:
            np.savez(file, data=[1, 2])
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.table({"data": [1, 2]}), path)
    elif kind == "mnist":
        path.mkdir()
        return [Path(p) for p in write_mnist(path, np.zeros((2, 3, 3), np.uint8), [1, 2], False)]
    else:
        write = {"lmdb": lmdb, "leveldb": leveldb}[kind]
        write(path, [plain(IMAGE, 0), plain(IMAGE, 1)])
    return [path]


ALL = ["blocks", "hdf5", "hdf5 list", "image list", "images", "leveldb", "lmdb", "mnist", "numpy"]


@pytest.mark.parametrize("kind", [*ALL, "parquet"])
def test_kinds_are_guessed(tmp_path, kind):
    records = open_records(*sample(kind, tmp_path / "some"))
    assert len(records) == 2
    assert len(records.take([1, 0])["data"]) == 2


def test_several_files_are_chained(tmp_path):
    for name, values in (("a", [1, 2]), ("b", [3])):
        write_blocks(tmp_path / name, ArrayRecords(x=values))
    records = open_records([tmp_path / "a", tmp_path / "b"])
    assert isinstance(records, Chain)
    assert records.take([2, 0])["x"].tolist() == [3, 1]
    assert len(open_records([tmp_path / "a"])) == 2
    pair = [tar(tmp_path / f"{n}.tar", {f"n{n}_1.png": png(n)}) for n in (1, 2)]
    assert open_records(pair).take([1, 0])["label"].tolist() == [1, 0]
    np.zeros((2, 3073), np.uint8).tofile(tmp_path / "data_batch_1.bin")
    assert len(open_records([tmp_path / "data_batch_1.bin"] * 2)) == 4


def test_options_reach_the_reader(tmp_path):
    path = folder(tmp_path, {"a/0.png": png(1)})
    assert open_records(path, size=(7, 8)).columns["data"].shape == (3, 7, 8)
    with pytest.raises(SpecError, match=r"kind 'images' cannot be opened so: .*'colour'"):
        open_records(path, colour=True)


def test_what_cannot_be_guessed(tmp_path):
    (tmp_path / "some").write_bytes(bytes(100))
    with pytest.raises(FileError, match=r"is none of blocks, cifar10, .* kind= says which"):
        open_records(tmp_path / "some")
    with pytest.raises(FileError, match="does not exist"):
        open_records(tmp_path / "nothing")
    with pytest.raises(SpecError, match="kind 'nosuch' are not known: blocks, "):
        open_records(tmp_path / "some", kind="nosuch")
    with pytest.raises(SpecError, match="no files"):
        open_records([])
    (tmp_path / "list.txt").write_text("  ")
    with pytest.raises(FileError, match=r"list\.txt: is none of blocks"):
        open_records(tmp_path / "list.txt")


def test_packed_mnist_is_known(tmp_path):
    with gzip.open(tmp_path / "images", "wb") as file:
        file.write(b"\0\0\x08\x03")
    assert kind_of(tmp_path / "images") == "mnist"


def test_public_names():
    for name in loaders.__all__:
        assert getattr(loaders, name) is not None
    assert dir(loaders) == sorted(loaders.__all__)
    homes = {value for _, value in KINDS.values()}
    assert homes <= set(loaders.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = loaders.nothing


FORKED = """
import os, sys
import numpy as np
from sparknet.loaders import Batches, open_records
from sparknet.native import set_threads
set_threads(2)
records = open_records(*sys.argv[1:])
want = records.take([1, 0])
batches = Batches(records, 2)
batches.next()
child = os.fork()
got = records.take([1, 0])
good = all((got[name] == want[name]).all() for name in want) and len(batches.next()["data"]) == 2
if child == 0:
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) or (0 if good else 2))
"""


@pytest.mark.parametrize("kind", ["hdf5", "image list", "leveldb", "lmdb", "numpy", "parquet"])
def test_a_forked_child_reads_on(tmp_path, kind):
    command = [sys.executable, "-c", FORKED, *map(str, sample(kind, tmp_path / "some"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


FORKED_WHILE_READING = """
import os, signal, sys, threading
from h5py._objects import phil
from sparknet.loaders import open_records
records = open_records(sys.argv[1])
records.take([0])
reading, forking = threading.Event(), threading.Event()

def read() -> None:
    with phil:
        reading.set()
        forking.wait(0.2)

thread = threading.Thread(target=read)
thread.start()
reading.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if len(records.take([1, 0])["data"]) == 2 else 1)
_, status = os.waitpid(child, 0)
thread.join()
sys.exit(os.waitstatus_to_exitcode(status) or (0 if len(records.take([0])["data"]) == 1 else 2))
"""


def test_a_child_forked_while_a_thread_is_in_h5py_reads_on(tmp_path):
    code = [
        sys.executable,
        "-c",
        FORKED_WHILE_READING,
        *map(str, sample("hdf5", tmp_path / "some")),
    ]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
