"""Files that make the libraries which read them fail in other ways: a FileError names the file."""

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.loaders import NumpyFiles, Tars
from sparknet.loaders.mnist_cifar10 import IMAGES, read_idx


def header(kind: bytes, size: bytes, name: bytes = b"x.png") -> bytes:
    """A tar header, whose size is as it is given here."""
    info = tarfile.TarInfo(name.decode())
    info.type = kind
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size.ljust(12, b"\0")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def base256(value: int) -> bytes:
    return b"\x80" + value.to_bytes(11, "big")


def chained() -> bytes:
    """Each long name is the name of another long name."""
    return (header(b"L", b"00000000002\0") + b"a\0".ljust(512, b"\0")) * 3000


def pax(text: bytes) -> bytes:
    record = b"size=" + text + b"\n"
    size = len(record) + 3
    size = len(b"%d " % size) + len(record)
    body = b"%d " % size + record
    front = header(b"x", b"%011o\0" % len(body)) + body.ljust(-(-len(body) // 512) * 512, b"\0")
    return front + header(b"0", b"0" * 11 + b"\0") + bytes(512)


def inside(name: str, data: bytes) -> bytes:
    """A tar in a tar."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


TARS: dict[str, Callable[[], bytes]] = {
    "chained": chained,
    "huge long name": lambda: header(b"L", base256(1 << 62)) + bytes(1024),
    "huge pax header": lambda: header(b"x", base256(1 << 70)) + bytes(1024),
    "huge member": lambda: header(b"0", base256(1 << 62)) + bytes(1024),
    "giant pax size": lambda: pax(b"9" * 40),
    "pax size of many digits": lambda: pax(b"9" * 5000),
    "negative pax size": lambda: pax(b"-1024"),
    "member past its tar": lambda: inside("a.tar", header(b"0", base256(1 << 62)) + bytes(1024)),
    "chained inside": lambda: inside("a.tar", chained()),
}


@pytest.mark.parametrize("name", TARS)
def test_tars(name, tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(TARS[name]())
    with pytest.raises(FileError, match=r"x\.tar") as caught:
        Tars(path).take([0])
    assert "\n" not in str(caught.value)


def npy(shape: str) -> bytes:
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    padded = text.ljust(128 - 10 + 512 - 1).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + b"\1"


@pytest.mark.parametrize(
    "shape",
    [
        str((1,) * 70),
        str((0, 2**62, 2**62)),
        str((0, 2**70)),
        str((2**63, 0)),
        str((True, 0, 2**63)),
    ],
)
def test_npy(shape, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(npy(shape))
    with pytest.raises(FileError, match=r"x\.npy: announces an array of .* numpy cannot hold"):
        NumpyFiles(data=path)


def test_idx(tmp_path):
    path = tmp_path / "x.idx"
    path.write_bytes(struct.pack(">4I", IMAGES, 0, 2**32 - 1, 2**32 - 1))
    with pytest.raises(FileError, match="an array of 0 x 4294967295 x 4294967295, which"):
        read_idx(path, IMAGES, [])


@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_npz_that_numpy_would_not_write(kind, tmp_path):
    file, path = io.BytesIO(), tmp_path / "x.npz"
    np.save(file, np.zeros(1 << 20))
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("data.npy", file.getvalue())
    whole = path.read_bytes()
    for data in (whole, whole[:60] + bytes(20) + whole[80:]):
        path.write_bytes(data)
        with pytest.raises(FileError, match=r"x\.npz: is packed in a way that is not known"):
            NumpyFiles(path)
