"""MNIST's files: images and labels in IDX format, plain or compressed with gzip."""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.mapped import Bytes, FileRecords, map_file, most_unpacked, shaped
from sparknet.native.guard import Guard
from sparknet.proto.byte_source import StrPath

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
    """The bytes of an IDX file, in the shape that its header announces."""
    memory: Any = map_file(path, guards)
    packed = memory[:2].tobytes() == GZIP
    room = most_unpacked(len(memory)) if packed else len(memory)
    file = gzip.GzipFile(fileobj=io.BytesIO(memory)) if packed else io.BytesIO(memory[:64])
    sizes = _sizes(file, path, magic)
    total = math.prod(sizes)
    if total > room:
        raise FileError(path, f"announces {' x '.join(map(str, sizes))} bytes and is too short")
    if packed:
        values = np.frombuffer(_read(file, total, path), np.uint8)
    else:
        values = memory[file.tell() : file.tell() + total]
    if len(values) != total:
        raise FileError(path, f"is cut short: {total} values announced, {len(values)} there")
    return shaped(values, sizes, path)


def _sizes(file: Any, path: StrPath, magic: int) -> tuple[int, ...]:
    found = int.from_bytes(_read(file, 4, path), "big")
    if found != magic:
        raise FileError(path, f"is no IDX file of MNIST: it begins with {found:#x}")
    axes = magic & 0xFF
    header = _read(file, 4 * axes, path)
    if len(header) != 4 * axes:
        raise FileError(path, "is cut short in its header")
    return struct.unpack(f">{axes}I", header)


def _read(file: Any, size: int, path: StrPath) -> bytes:
    try:
        data: bytes = file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(path, f"is damaged: {error}") from error
    return data
