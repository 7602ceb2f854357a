"""Block files: records row by row in one file that is mapped into memory, never loaded.

A page sits at the front (a magic number, a length and a check sum, then JSON text: how many
records, and of what columns), then come the records, each with its columns at fixed offsets.
So a file can be larger than memory, be written in one go, and be shared by every process of a
machine; a record is one place on the disk.
"""

from __future__ import annotations

import json
import mmap
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Literal

import numpy as np

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, clean
from sparknet.loaders.records import (
    Array,
    ArrayRecords,
    Batch,
    Column,
    Indices,
    Opened,
    Records,
    column_of,
    columns_text,
)
from sparknet.native.core import Guard
from sparknet.proto.byte_source import StrPath, check_is_file, open_file

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Order = Literal["C", "F"]

MOST_GROWTH = 1100
"""Deflate makes at most about 1030 bytes out of one."""
_FREE, _GROWTH = 1 << 28, 32


def most_unpacked(packed: int) -> int:
    """Return the most bytes that so many packed ones may become."""
    return min(MOST_GROWTH * max(packed, 1), _FREE + _GROWTH * packed)


class FileRecords(Opened, ArrayRecords):
    """Arrays that are views of files.

    Where a file is cut short while it is in use the next `take` raises FileError; rows of a
    slice that was taken before turn to zeros.
    """

    def __init__(self, guards: Sequence[Guard], **arrays: Any) -> None:
        super().__init__(**arrays)
        self._guards = guards
        self._check()

    def take(self, indices: Indices) -> Batch:
        batch = super().take(indices)
        self._check()
        return batch

    def _check(self) -> None:
        for guard in self._guards:
            guard.check()


def map_file(path: StrPath, guards: list[Guard]) -> Bytes:
    """Return the bytes of an ordinary file, for reading; its guard joins the others."""
    check_is_file(path)
    try:
        with open_file(path) as file:
            if not file.seek(0, 2):
                return np.zeros(0, np.uint8)
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be mapped: {error}") from error
    guards.append(Guard(memory, path))
    return np.frombuffer(memory, np.uint8)


def shaped(values: Array, shape: tuple[int, ...], path: StrPath, order: Order = "C") -> Array:
    """Reshape to what a file announces, which numpy may not know: 70 axes, 0 x 2^40 x 2^40."""
    try:
        return values.reshape(shape, order=order)
    except (ValueError, OverflowError, TypeError) as error:
        sizes = clean(" x ".join(map(str, shape)))
        raise FileError(path, f"announces an array of {sizes}, which numpy cannot hold") from error


MAGIC = b"SNBLOCK1"
FRONT = struct.Struct("<8sII")
"""Magic number; length of the JSON text after it; CRC-32 of the rest of the page."""
START = 1 << 12
"""Where the records begin."""
KIND = re.compile(r"[<|][biuf](1|2|4|8)")
LARGEST_RECORD = 1 << 31
MOST_AXES = 8
ALIGNED = 8
AT_ONCE = 1024


class Blocks(FileRecords):
    """The records of one block file.  Slices are views of the file; nothing else is held."""

    def __init__(self, path: StrPath) -> None:
        guards: list[Guard] = []
        memory = map_file(path, guards)
        _, columns = read_header(memory, path)
        rows = memory[START:].view(row_type(columns))
        super().__init__(guards, **{name: rows[name] for name in columns})


def write_blocks(
    path: StrPath,
    records: Records | Iterable[Mapping[str, Any]],
    at_once: int = AT_ONCE,
    mode: int = 0o666,
) -> int:
    """Write records, or batches as they come, to a block file; returns their number.

    It appears under its name when it is complete, and replaces an older one.  ``mode`` says who may
    read it, as far as the umask lets them.
    """
    batches = _batches(records, at_once) if isinstance(records, Records) else iter(records)
    with atomic_file(path, mode) as draft, draft.open("wb") as file:
        file.write(bytes(START))
        columns: dict[str, Column] = {}
        count = 0
        for batch in batches:
            arrays = {
                name: np.asarray(values, np.asarray(values).dtype.newbyteorder("<"))
                for name, values in batch.items()
            }
            columns = columns or _checked(path, arrays)
            count += _append(file, path, columns, arrays)
        if not columns:
            raise FileError(path, "cannot be made of no batch: its columns are not known")
        _finish(file, path, count, columns)
    return count


def read_header(memory: Bytes, path: StrPath) -> tuple[int, dict[str, Column]]:
    """Return how many records of which columns a file holds, if it is whole."""
    front, size = memory[:START].tobytes(), len(memory)
    if front[: len(MAGIC)] != MAGIC[: len(front)] or not front:
        raise FileError(path, "is no block file: it begins otherwise")
    if len(front) < START:
        raise FileError(path, "is cut short in its header")
    _, length, digest = FRONT.unpack_from(front)
    if zlib.crc32(front[FRONT.size :]) != digest:
        raise FileError(path, "has a damaged header")
    try:
        count, columns = _parsed(json.loads(front[FRONT.size : FRONT.size + length]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(path, f"has a header that cannot be used: {error}") from error
    needed = START + count * row_type(columns).itemsize
    if size != needed:
        fault = "is cut short" if size < needed else "has a tail"
        raise FileError(path, f"{fault}: {needed} bytes announced, {size} there")
    return count, columns


def row_type(columns: Mapping[str, Column]) -> np.dtype[Any]:
    """Return a record as it lies in the file: each column at the next multiple of 8 bytes."""
    offsets, at = [], 0
    for column in columns.values():
        offsets.append(at)
        at += -(-column.size // ALIGNED) * ALIGNED
    formats = [(column.dtype, column.shape) for column in columns.values()]
    return np.dtype(
        {"names": list(columns), "formats": formats, "offsets": offsets, "itemsize": max(at, 1)}
    )


def _parsed(header: Any) -> tuple[int, dict[str, Column]]:
    count, listed = header["records"], header["columns"]
    if type(count) is not int or not 0 <= count < 1 << 48 or not isinstance(listed, list):
        raise ValueError("no count of records, or no list of columns")
    columns: dict[str, Column] = {}
    for name, kind, shape in listed:
        if not isinstance(name, str) or not name or name in columns:
            raise ValueError(f"a column called {name!r}")
        if not isinstance(kind, str) or not KIND.fullmatch(kind):
            raise ValueError(f"values of type {kind!r}")
        columns[name] = Column(np.dtype(kind), _shape(shape))
    if not columns or sum(_size(column) for column in columns.values()) > LARGEST_RECORD:
        raise ValueError("records of no or too large a size")
    return count, columns


def _shape(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape)
    if len(sizes) > MOST_AXES or not all(type(n) is int and 0 <= n < 1 << 31 for n in sizes):
        raise ValueError(f"a shape of {shape!r}")
    return sizes


def _size(column: Column) -> int:
    """Return `Column.size` for sizes that may overflow 64 bits."""
    size = column.dtype.itemsize
    for axis in column.shape:
        size *= axis
    return size


def _batches(records: Records, at_once: int) -> Iterator[Batch]:
    # Without records there is one empty batch, which gives the columns.
    for begin in range(0, max(len(records), 1), at_once):
        yield records.take(slice(begin, min(begin + at_once, len(records))))


def _checked(path: StrPath, arrays: Mapping[str, Array]) -> dict[str, Column]:
    columns = {name: column_of(values) for name, values in arrays.items()}
    for name, column in columns.items():
        if not KIND.fullmatch(column.dtype.str) or not arrays[name].ndim:
            raise FileError(path, f"cannot hold column '{name}' of type {column.dtype}")
    return columns


def _append(
    file: BinaryIO, path: StrPath, columns: Mapping[str, Column], arrays: Mapping[str, Array]
) -> int:
    theirs = {name: column_of(values) for name, values in arrays.items()}
    lengths = {len(values) for values in arrays.values()}
    if theirs != columns or len(lengths) != 1:
        raise FileError(
            path,
            f"holds {columns_text(columns)}; a batch of {columns_text(theirs)} "
            f"with {sorted(lengths)} rows does not fit",
        )
    rows = np.zeros(lengths.pop(), row_type(columns))
    for name, values in arrays.items():
        rows[name] = values
    file.write(rows.data)
    return len(rows)


def _finish(file: BinaryIO, path: StrPath, count: int, columns: Mapping[str, Column]) -> None:
    listed = [[name, column.dtype.str, list(column.shape)] for name, column in columns.items()]
    text = json.dumps({"records": count, "columns": listed}).encode()
    if FRONT.size + len(text) > START:
        raise FileError(path, f"cannot hold {len(columns)} columns: their names take too much room")
    page = text.ljust(START - FRONT.size, b"\0")
    file.seek(0)
    file.write(FRONT.pack(MAGIC, len(text), zlib.crc32(page)) + page)
