"""Mapped files that somebody cuts short while they are read: a FileError, and the process lives."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.loaders import CIFAR10, MNIST, ArrayRecords, Blocks, Datums, NumpyFiles, Records
from sparknet.loaders import write_blocks as write
from sparknet.loaders.datums import Cursor
from tests.layers.host.nets import images, of_images

COUNT = 60
PIXELS = images(COUNT, 3, 32, 32)


def blocks(folder: Path) -> tuple[Records, Path]:
    write(folder / "x", ArrayRecords(data=PIXELS, label=np.arange(COUNT)))
    return Blocks(folder / "x"), folder / "x"


def npy(folder: Path) -> tuple[Records, Path]:
    np.save(folder / "x.npy", PIXELS)
    return NumpyFiles(data=folder / "x.npy"), folder / "x.npy"


def npz(folder: Path) -> tuple[Records, Path]:
    np.savez(folder / "x.npz", data=PIXELS)
    return NumpyFiles(folder / "x.npz"), folder / "x.npz"


def cifar10(folder: Path) -> tuple[Records, Path]:
    rows = np.concatenate([np.zeros((COUNT, 1), np.uint8), PIXELS.reshape(COUNT, -1)], 1)
    (folder / "x").write_bytes(rows.tobytes())
    return CIFAR10(folder / "x"), folder / "x"


def mnist(folder: Path) -> tuple[Records, Path]:
    for name, magic, values in (("x", 0x803, PIXELS[:, 0]), ("y", 0x801, np.zeros(COUNT, "u1"))):
        sizes = np.array([magic, *values.shape], ">u4")
        (folder / name).write_bytes(sizes.tobytes() + values.tobytes())
    return MNIST(folder / "x", folder / "y"), folder / "x"


def lmdb(folder: Path) -> tuple[Records, Path]:
    path = Path(of_images(folder, PIXELS))
    return Datums(path), path / "data.mdb"


KINDS = [blocks, npy, npz, cifar10, mnist, lmdb]
Kind = Callable[[Path], tuple[Records, Path]]
SAYS = "was cut short while it was read"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [0, 5000, -1])
def test_rows_after_the_cut(kind, left, tmp_path):
    records, path = kind(tmp_path)
    assert len(records.take([2])["data"]) == 1
    size = path.stat().st_size
    os.truncate(path, left if left >= 0 else size - 1)
    for rows in ([COUNT - 1, 0, 30], slice(0, COUNT)):
        with pytest.raises(FileError, match=SAYS) as caught:
            records.take(rows)
        assert str(tmp_path) in str(caught.value)
    # What grows back does not bring the values back.
    os.truncate(path, size)
    if left >= 0:
        with pytest.raises(FileError, match=SAYS):
            records.take([COUNT - 1])


def test_a_slice_that_is_held(tmp_path):
    """It is a view: what was lost reads as zeros, in this thread and in others."""
    records, path = blocks(tmp_path)
    held = records.take(slice(0, COUNT))["data"]
    os.truncate(path, 1 << 16)
    assert not held[-1].any()
    np.testing.assert_array_equal(held[3], PIXELS[3])
    with pytest.raises(FileError, match=SAYS):
        records.take([0])


def test_layers(tmp_path):
    _, path = lmdb(tmp_path)
    cursor = Cursor(str(path.parent))
    cursor.take(3)
    os.truncate(path, 4096)
    with pytest.raises(FileError, match=SAYS):
        cursor.take(COUNT)


def test_a_file_that_is_replaced_stays_as_it_was(tmp_path):
    records, path = blocks(tmp_path)
    write(path, ArrayRecords(data=PIXELS[:2]))
    np.testing.assert_array_equal(records.take(range(COUNT))["data"], PIXELS)
    path.unlink()
    np.testing.assert_array_equal(records.take(range(COUNT))["data"], PIXELS)


def test_guards_are_given_back(tmp_path):
    """More files than there are guards, one after the other."""
    path = blocks(tmp_path)[1]
    for _ in range(5000):
        records = Blocks(path)
    os.truncate(path, 4096)
    with pytest.raises(FileError, match=SAYS):
        records.take([COUNT - 1])


OTHER = """
import mmap, os, sys
from sparknet.loaders import Blocks
records = Blocks(sys.argv[1])
with open(sys.argv[2], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
    os.truncate(sys.argv[2], 0)
    if len(sys.argv) > 3:
        import signal
        os.kill(os.getpid(), signal.SIGBUS)
    print(memory[0])
"""


@pytest.mark.parametrize("more", [[], ["sent"]])
def test_memory_of_others_ends_the_process_as_before(more, tmp_path):
    path = blocks(tmp_path)[1]
    (tmp_path / "other").write_bytes(bytes(9999))
    command = [sys.executable, "-c", OTHER, str(path), str(tmp_path / "other"), *more]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGBUS
