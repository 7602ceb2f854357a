"""MNIST's and CIFAR-10's files, and their copies on the network.

Sizes and SHA-256 digests are those that TensorFlow Datasets publishes (its url_checksums).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import shutil
import struct
import tarfile
import zlib
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, SpecError
from sparknet.loaders.blocks import Bytes, FileRecords, map_file, most_unpacked, shaped
from sparknet.loaders.opening import open_records
from sparknet.loaders.records import Records
from sparknet.native.core import Guard
from sparknet.proto.byte_source import StrPath, open_file

IMAGES, LABELS = 0x803, 0x801
GZIP = b"\x1f\x8b"


class MNIST(FileRecords):
    """data: 1 x height x width bytes; label.  Plain files are mapped, compressed ones unpacked."""

    def __init__(self, images: StrPath, labels: StrPath) -> None:
        guards: list[Guard] = []
        pixels, marks = read_idx(images, IMAGES, guards), read_idx(labels, LABELS, guards)
        if len(pixels) != len(marks):
            raise FileError(images, f"holds {len(pixels)} images, but {labels} {len(marks)} labels")
        data = pixels[:, np.newaxis]
        super().__init__(guards, data=data, label=marks.astype(np.int32))


def read_idx(path: StrPath, magic: int, guards: list[Guard]) -> Bytes:
    """Return the bytes of an IDX file, in the shape that its header announces."""
    memory: Any = map_file(path, guards)
    packed = memory[:2].tobytes() == GZIP
    room = most_unpacked(len(memory)) if packed else len(memory)
    file = gzip.GzipFile(fileobj=io.BytesIO(memory)) if packed else io.BytesIO(memory[:64])
    sizes = _sizes(file, path, magic)
    total = math.prod(sizes)
    if total > room:
        raise FileError(path, f"announces {' x '.join(map(str, sizes))} bytes and is too short")
    if packed:
        values = np.frombuffer(_read_exactly(file, total, path), np.uint8)
    else:
        values = memory[file.tell() : file.tell() + total]
    if len(values) != total:
        raise FileError(path, f"is cut short: {total} values announced, {len(values)} there")
    return shaped(values, sizes, path)


def _sizes(file: Any, path: StrPath, magic: int) -> tuple[int, ...]:
    actual = int.from_bytes(_read_exactly(file, 4, path), "big")
    if actual != magic:
        raise FileError(path, f"is no IDX file of MNIST: it begins with {actual:#x}")
    axes = magic & 0xFF
    header = _read_exactly(file, 4 * axes, path)
    if len(header) != 4 * axes:
        raise FileError(path, "is cut short in its header")
    return struct.unpack(f">{axes}I", header)


def _read_exactly(file: Any, size: int, path: StrPath) -> bytes:
    try:
        data: bytes = file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(path, f"is damaged: {error}") from error
    return data


ROW = np.dtype([("label", np.uint8), ("data", np.uint8, (3, 32, 32))])


class CIFAR10(FileRecords):
    """data: 3 x 32 x 32 bytes, red, green and blue as stored; label.  One file, mapped."""

    def __init__(self, path: StrPath) -> None:
        guards: list[Guard] = []
        memory = map_file(path, guards)
        if len(memory) % ROW.itemsize:
            raise FileError(
                path, f"is no CIFAR-10 file: its length is no multiple of {ROW.itemsize}"
            )
        rows = memory.view(ROW)
        super().__init__(guards, data=rows["data"], label=rows["label"].astype(np.int32))


PIECE = 1 << 20
PATIENCE = 60.0
"""Seconds that a server may stay silent."""
_MOST_MEMBERS, _MOST_UNPACKED = 64, 1 << 28
"""Of CIFAR-10's archive, which has 8 files of 186 MB."""
SCHEMES = ("http", "https", "file")


@dataclass(frozen=True)
class Published:
    """A file on the network, with its size and digest."""

    url: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
DATASETS: dict[str, tuple[Published, ...]] = {
    "mnist": (
        Published(
            f"{_MNIST}train-images-idx3-ubyte.gz",
            9912422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        Published(
            f"{_MNIST}train-labels-idx1-ubyte.gz",
            28881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        Published(
            f"{_MNIST}t10k-images-idx3-ubyte.gz",
            1648877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        Published(
            f"{_MNIST}t10k-labels-idx1-ubyte.gz",
            4542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    "cifar10": (
        Published(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            170052171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
}
CIFAR10_FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")


def download(name: str, folder: StrPath, mirror: str | None = None) -> tuple[Records, Records]:
    """Return the training and the test records of "mnist" or "cifar10".

    Files that are in the folder already and match the digests are not fetched again.  `mirror`
    is another place (a URL, file:// as well) that has the files under the same names.
    """
    if name not in DATASETS:
        raise SpecError(f"no data set is called '{name}': there are {', '.join(DATASETS)}")
    paths = [fetch(file, folder, mirror) for file in DATASETS[name]]
    if name == "mnist":
        return MNIST(paths[0], paths[1]), MNIST(paths[2], paths[3])
    *train, test = _unpacked(paths[0])
    return open_records(train, kind="cifar10"), open_records(test, kind="cifar10")


def fetch(file: Published, folder: StrPath, mirror: str | None = None) -> Path:
    """Return a published file; it gets its name when it is complete and matches its digest."""
    target = Path(folder) / file.name
    if target.is_file() and target.stat().st_size == file.size and _digest(target) == file.sha256:
        return target
    url = file.url if mirror is None else f"{mirror.rstrip('/')}/{file.name}"
    if urlsplit(url).scheme not in SCHEMES:
        raise FileError(url, f"is no address that can be fetched from: {', '.join(SCHEMES)}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as draft:
        try:
            with urlopen(url, timeout=PATIENCE) as source, draft.open("wb") as out:
                _copy(source, out, file, url)
        except (OSError, HTTPException, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(url, f"cannot be downloaded: {error}") from error
    return target


def _copy(source: BinaryIO, out: BinaryIO, file: Published, url: str) -> None:
    digest, size = hashlib.sha256(), 0
    while size <= file.size and (piece := source.read(PIECE)):
        digest.update(piece)
        out.write(piece)
        size += len(piece)
    if size != file.size:
        raise FileError(url, f"is not what was published: not {file.size} bytes")
    if digest.hexdigest() != file.sha256:
        raise FileError(
            url,
            f"is not what was published: its SHA-256 is {digest.hexdigest()}, not {file.sha256}",
        )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open_file(path) as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _unpacked(archive: Path) -> list[Path]:
    """CIFAR-10's files beside their archive; only those six are taken out of it."""
    paths = [archive.with_name(name) for name in CIFAR10_FILES]
    missing = {path.name: path for path in paths if not path.is_file()}
    if not missing:
        return paths
    try:
        with tarfile.open(archive, "r|gz") as tar:
            total = 0
            for number, info in enumerate(tar):
                total += info.size
                if number > _MOST_MEMBERS or total > _MOST_UNPACKED:
                    raise FileError(
                        archive,
                        f"unpacks to more than {_MOST_MEMBERS} files or {_MOST_UNPACKED} bytes: "
                        "not CIFAR-10's",
                    )
                path = missing.pop(Path(info.name).name, None)
                if path is not None and (data := tar.extractfile(info)) is not None:
                    with atomic_file(path) as draft, draft.open("wb") as out:
                        shutil.copyfileobj(data, out)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise FileError(archive, f"cannot be unpacked: {error}") from error
    if missing:
        raise FileError(archive, f"holds no {', '.join(missing)}")
    return paths
