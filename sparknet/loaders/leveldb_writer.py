"""Writes a LevelDB in one go, from records in key order; no library, no lock.

The folder is what LevelDB leaves after everything was compacted: tables on the last level, and a
manifest that lists them.  Blocks are not compressed; all check sums are there.
Layout: LevelDB's doc/table_format.md and doc/log_format.md, version_edit.cc.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

from sparknet.errors import FileError
from sparknet.loaders.leveldb import (
    COMPARATOR,
    COMPARATOR_NAME,
    LAST_SEQUENCE,
    LOG_NUMBER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    PREVIOUS_LOG_NUMBER,
)
from sparknet.loaders.leveldb_table import (
    BLOCK,
    FIRST,
    FOOTER,
    FULL,
    HEADER,
    LAST,
    MAGIC,
    MIDDLE,
    PLAIN,
    VALUE,
    masked,
)

BLOCK_SIZE = 1 << 14
RESTART_EVERY = 16
TABLE_SIZE = 1 << 25
LAST_LEVEL = 6
"""LevelDB moves nothing from this level to another."""
MANIFEST, LOG, FIRST_TABLE = 2, 3, 4
"""The numbers of files; a log that was flushed need not be there."""
LONGEST = 2**31 - 1


class TableWriter:
    """One table file: blocks of records, then the index of the blocks."""

    def __init__(self, path: Path, number: int, first: bytes) -> None:
        self.number, self.first, self.last = number, first, first
        self.size = 0
        self._file = path.open("wb")
        self._block = BlockWriter()
        self._index = BlockWriter(restart_every=1)

    def add(self, key: bytes, value: bytes) -> None:
        self.last = key
        self._block.add(key, value)
        if self._block.size >= BLOCK_SIZE:
            self._end_block()

    def finish(self) -> None:
        self._end_block()
        handles = self._write(BlockWriter()) + self._write(self._index)
        self._put(handles.ljust(FOOTER - 8, b"\0") + MAGIC.to_bytes(8, "little"))
        self.close()

    def close(self) -> None:
        self._file.close()

    def _end_block(self) -> None:
        if self._block.size:
            self._index.add(self.last, self._write(self._block))
            self._block = BlockWriter()

    def _write(self, block: BlockWriter) -> bytes:
        """Return a block, and the check sum of it; its handle."""
        data, start = block.data() + bytes([PLAIN]), self.size
        self._put(data + masked(data).to_bytes(4, "little"))
        return varint(start) + varint(len(data) - 1)

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)


class BlockWriter:
    """Keys share their beginnings with the key before, except at the restart points."""

    def __init__(self, restart_every: int = RESTART_EVERY) -> None:
        self.size = 0
        self._every = restart_every
        self._parts: list[bytes] = []
        self._restarts = [0]
        self._count = 0
        self._last = b""

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count and self._count % self._every == 0:
            self._restarts.append(self.size)
        elif self._count:
            shared = _common(self._last, key)
        head = varint(shared) + varint(len(key) - shared) + varint(len(value))
        self._parts += (head, key[shared:], value)
        self.size += len(head) + len(key) - shared + len(value)
        self._count += 1
        self._last = key

    def data(self) -> bytes:
        numbers = [*self._restarts, len(self._restarts)]
        return b"".join(self._parts) + b"".join(one.to_bytes(4, "little") for one in numbers)


class LevelDBWriter:
    """Takes records; `finish` makes them a database."""

    def __init__(self, folder: Path, path: object) -> None:
        self.folder, self.path = folder, path
        self.entries = 0
        self._last: bytes | None = None
        self._table: TableWriter | None = None
        self._tables: list[TableWriter] = []

    def put(self, key: bytes, value: bytes) -> None:
        if self._last is not None and key <= self._last:
            raise FileError(self.path, f"needs ascending keys: {key!r} came after {self._last!r}")
        if len(key) + len(value) > LONGEST:
            raise FileError(self.path, f"cannot hold {len(value)} bytes under {key!r}")
        self._last = key
        self.entries += 1
        internal = key + (self.entries << 8 | VALUE).to_bytes(8, "little")
        if self._table is None:
            number = FIRST_TABLE + len(self._tables)
            self._table = TableWriter(self.folder / f"{number:06d}.ldb", number, internal)
            self._tables.append(self._table)
        self._table.add(internal, value)
        if self._table.size >= TABLE_SIZE:
            self._end_table()

    def finish(self) -> None:
        self._end_table()
        name = f"MANIFEST-{MANIFEST:06d}"
        with (self.folder / name).open("wb") as file:
            write_log(file, self._edit())
        (self.folder / "CURRENT").write_text(f"{name}\n", encoding="ascii")

    def close(self) -> None:
        for table in self._tables:
            table.close()

    def _end_table(self) -> None:
        if self._table is not None:
            self._table.finish()
        self._table = None

    def _edit(self) -> bytes:
        """Return the manifest's only edit."""
        edit = varint(COMPARATOR_NAME) + _text(COMPARATOR)
        for tag, value in (
            (LOG_NUMBER, LOG),
            (PREVIOUS_LOG_NUMBER, 0),
            (NEXT_FILE_NUMBER, FIRST_TABLE + len(self._tables)),
            (LAST_SEQUENCE, self.entries),
        ):
            edit += varint(tag) + varint(value)
        for table in self._tables:
            for value in (NEW_FILE, LAST_LEVEL, table.number, table.size):
                edit += varint(value)
            edit += _text(table.first) + _text(table.last)
        return edit


def write_log(file: BinaryIO, record: bytes) -> None:
    """Write the first record of a log, in as many pieces as blocks of the log need."""
    pieces = [
        record[start : start + BLOCK - HEADER]
        for start in range(0, len(record) or 1, BLOCK - HEADER)
    ]
    for number, piece in enumerate(pieces):
        is_first, is_last = number == 0, number == len(pieces) - 1
        kind = (FULL if is_last else FIRST) if is_first else LAST if is_last else MIDDLE
        body = bytes([kind]) + piece
        head = masked(body).to_bytes(4, "little") + len(piece).to_bytes(2, "little")
        file.write(head + body)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(data: bytes) -> bytes:
    return varint(len(data)) + data


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common beginning of two keys."""
    end = min(len(one), len(other))
    return next((at for at in range(end) if one[at] != other[at]), end)


@contextmanager
def new_leveldb(path: str) -> Iterator[LevelDBWriter]:
    """Write a database into the folder `path`, which appears if the block succeeds.

    An existing one is not replaced.
    """
    folder = Path(path)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise FileError(path, "exists already")
    draft = folder.with_name(f".{folder.name[:200]}.{os.urandom(4).hex()}")
    try:
        draft.mkdir(parents=True)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror}") from error
    writer = LevelDBWriter(draft, path)
    try:
        yield writer
        writer.finish()
        draft.replace(folder)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(path, f"cannot be written: {error.strerror}") from error
    finally:
        writer.close()
        with suppress(OSError):
            rmtree(draft)
