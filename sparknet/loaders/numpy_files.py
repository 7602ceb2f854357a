"""numpy's files: .npy and .npz; what is not compressed is mapped, not loaded."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from sparknet.errors import FileError, clean
from sparknet.loaders.blocks import Bytes, FileRecords, map_file, most_unpacked, shaped
from sparknet.loaders.records import Array
from sparknet.native.core import Guard
from sparknet.proto.byte_source import StrPath

LOCAL = struct.Struct("<4s22xHH")
"""A member's own header: a magic number, then the lengths of its name and its extra field."""


class NumpyFiles(FileRecords):
    """An .npz file, whose arrays are the columns; or .npy files, a column each by keyword."""

    def __init__(self, archive: StrPath | None = None, **columns: StrPath) -> None:
        guards: list[Guard] = []
        arrays = {} if archive is None else read_npz(archive, guards)
        arrays |= {name: read_npy(path, guards) for name, path in columns.items()}
        super().__init__(guards, **arrays)


def read_npy(path: StrPath, guards: list[Guard]) -> Array:
    """Return the array of an .npy file, mapped."""
    return _array(map_file(path, guards), path)


def read_npz(path: StrPath, guards: list[Guard]) -> dict[str, Array]:
    """Return the arrays of an .npz file: mapped, or unpacked where they are compressed."""
    memory = map_file(path, guards)
    try:
        with zipfile.ZipFile(Path(path)) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            if not members:
                raise FileError(path, "holds no arrays")
            packed = [info for info in members if info.compress_type == zipfile.ZIP_DEFLATED]
            total = sum(info.file_size for info in packed)
            if total > most_unpacked(len(memory)):
                raise FileError(path, f"unpacks to {total} bytes, too many for its {len(memory)}")
            return {
                info.filename[: -len(".npy")]: _array(_member(archive, info, memory), path)
                for info in members
            }
    except FileError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as error:
        raise FileError(path, f"is no .npz file that can be read: {clean(error)}") from error
    except (NotImplementedError, RuntimeError) as error:
        raise FileError(path, f"is packed in a way that is not known: {clean(error)}") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, memory: Bytes) -> Bytes:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(f"'{info.filename}' is not packed as numpy packs")
    if info.compress_type != zipfile.ZIP_STORED:
        if info.file_size > most_unpacked(info.compress_size):
            raise ValueError(f"'{info.filename}' announces {info.file_size} bytes")
        return np.frombuffer(archive.read(info), np.uint8)
    header = memory[info.header_offset : info.header_offset + LOCAL.size].tobytes()
    if len(header) != LOCAL.size:
        raise ValueError(f"'{info.filename}' lies after the end of the file")
    magic, name, extra = LOCAL.unpack(header)
    start = info.header_offset + LOCAL.size + name + extra
    if magic != b"PK\3\4" or start + info.file_size > len(memory):
        raise ValueError(f"'{info.filename}' lies after the end of the file")
    return memory[start : start + info.file_size]


def _array(memory: Bytes, path: StrPath) -> Array:
    """Return what the bytes of an .npy file hold, without a copy."""
    file = io.BytesIO(memory[: 1 << 16].tobytes())
    try:
        shape, fortran, dtype = _header(file)
    except (ValueError, SyntaxError, TypeError, RecursionError, TokenError) as error:
        raise FileError(path, f"is no .npy file that can be read: {clean(error)}") from error
    if dtype.hasobject or dtype.kind not in "biuf":
        raise FileError(path, f"holds values of type {dtype}, not numbers")
    size = math.prod(shape) * dtype.itemsize
    values = memory[file.tell() : file.tell() + size]
    if len(values) != size or any(axis < 0 for axis in shape):
        raise FileError(path, f"announces {size} bytes of values and is too short")
    array: Array = values.view(dtype) if size else np.zeros(0, dtype)
    return shaped(array, shape, path, "F" if fortran else "C")


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the format is not known")
