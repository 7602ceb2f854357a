"""MNIST's files: images and labels in IDX format, plain or compressed with gzip."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from sparknet.errors import FileError

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Item = tuple[Pixels, int]

IMAGES, LABELS = 0x803, 0x801
GZIP = b"\x1f\x8b"
MOST_GROWTH = 1100
"""Deflate makes at most about 1030 bytes out of one."""


def read_mnist(images: str, labels: str) -> Iterator[Item]:
    """Images of 1 x height x width bytes and their labels, one after the other."""
    with _open(images, IMAGES, 3) as pixels, _open(labels, LABELS, 1) as marks:
        (count, height, width), picture_file = pixels
        (label_count,), label_file = marks
        if count != label_count:
            raise FileError(images, f"holds {count} images, but {labels} {label_count} labels")
        for number in range(count):
            data = _read(picture_file, height * width, images, f"image {number}")
            label = _read(label_file, 1, labels, f"label {number}")
            yield np.frombuffer(data, np.uint8).reshape(1, height, width), label[0]


@contextmanager
def _open(path: str, magic: int, axes: int) -> Iterator[tuple[tuple[int, ...], IO[bytes]]]:
    """The sizes that a file announces, checked against its length, and the file behind them."""
    if not Path(path).is_file():
        raise FileError(path, "does not exist" if not Path(path).exists() else "is no file")
    with Path(path).open("rb") as plain:
        packed = plain.read(2) == GZIP
        plain.seek(0)
        file: Any = gzip.GzipFile(fileobj=plain) if packed else plain
        (found,) = struct.unpack(">I", _read(file, 4, path, "its header"))
        if found != magic:
            raise FileError(path, f"is no IDX file of MNIST: it begins with {found:#x}")
        sizes = struct.unpack(f">{axes}I", _read(file, 4 * axes, path, "its header"))
        room = Path(path).stat().st_size * (MOST_GROWTH if packed else 1)
        if math.prod(sizes) > room:
            raise FileError(path, f"announces {' x '.join(map(str, sizes))} bytes and is too short")
        yield sizes, file


def _read(file: IO[bytes], size: int, path: str, what: str) -> bytes:
    try:
        data = file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(path, f"is damaged at {what}: {error}") from error
    if len(data) != size:
        raise FileError(path, f"is cut short at {what}")
    return data
