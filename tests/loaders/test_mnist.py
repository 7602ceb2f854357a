"""MNIST's and CIFAR-10's files."""

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.loaders import CIFAR10, MNIST, Column, open_records


def write_mnist(folder: Path, pixels: np.ndarray, labels: list[int], packed: bool) -> list[str]:
    pack = gzip.compress if packed else bytes
    parts = {
        "images": struct.pack(">4I", 0x803, *pixels.shape) + pixels.tobytes(),
        "labels": struct.pack(">2I", 0x801, len(labels)) + bytes(labels),
    }
    for name, content in parts.items():
        (folder / name).write_bytes(pack(content))
    return [str(folder / name) for name in parts]


@pytest.mark.parametrize("packed", [False, True])
def test_mnist(packed, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 6)).astype(np.uint8)
    records = MNIST(*write_mnist(tmp_path, pixels, [3, 1, 4, 1], packed))
    assert records.columns == {
        "data": Column(np.dtype(np.uint8), (1, 5, 6)),
        "label": Column(np.dtype(np.int32), ()),
    }
    for one in (records, pickle.loads(pickle.dumps(records))):
        batch = one.take([2, 0])
        assert batch["label"].tolist() == [4, 3]
        np.testing.assert_array_equal(batch["data"][:, 0], pixels[[2, 0]])


@pytest.mark.parametrize("packed", [False, True])
def test_damage(packed, tmp_path):
    pixels = np.zeros((4, 5, 6), np.uint8)
    images, labels = write_mnist(tmp_path, pixels, [1, 2, 3], packed)
    with pytest.raises(FileError, match=r"holds 4 images, but .*labels 3 labels"):
        MNIST(images, labels)
    with pytest.raises(FileError, match="is no IDX file of MNIST: it begins with 0x801"):
        MNIST(labels, images)
    images, labels = write_mnist(tmp_path, pixels, [1, 2, 3, 4], packed)
    whole = Path(images).read_bytes()
    Path(images).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"cut short|damaged|too short"):
        MNIST(images, labels)
    header = struct.pack(">4I", 0x803, 4, 1 << 31, 1 << 31)
    Path(images).write_bytes(gzip.compress(header) if packed else header)
    with pytest.raises(FileError, match="announces 4 x 2147483648 x 2147483648 bytes"):
        MNIST(images, labels)
    with pytest.raises(FileError, match="does not exist"):
        MNIST(tmp_path / "no", labels)


def test_cifar10(tmp_path):
    data = np.random.default_rng(0).integers(0, 256, (5, 3073)).astype(np.uint8)
    files = [str(tmp_path / name) for name in "ab"]
    data[:2].tofile(files[0])
    data[2:].tofile(files[1])
    batch = open_records(files, kind="cifar10").take([4, 1, 2])
    assert batch["label"].tolist() == data[[4, 1, 2], 0].tolist()
    np.testing.assert_array_equal(batch["data"].reshape(3, -1), data[[4, 1, 2], 1:])
    data[0, :9].tofile(files[0])
    with pytest.raises(FileError, match="no multiple of 3073"):
        CIFAR10(files[0])
