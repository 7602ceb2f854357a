"""LevelDB databases, read in key order; no library, no writing, no lock.

A database is a folder: CURRENT names a manifest, which is a log of edits that say which
tables and which write-ahead logs are alive.  Records that were never flushed to a table
are still in a log.  Every length is checked against its file, and every check sum.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparknet.errors import FileError
from sparknet.loaders.leveldb_table import Entry, Fields, Table, log_records, open_table, replay

MANIFEST_NAME = re.compile(r"MANIFEST-[0-9]{1,20}")
COMPARATOR = b"leveldb.BytewiseComparator"
LARGEST_MANIFEST = 1 << 26
WAITING = -(1 << 80)
"""An age that sorts before every other."""
LOG = -1
"""Stands for the write-ahead logs where a table has its number."""
COMPARATOR_NAME, LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE, COMPACT_POINTER = 1, 2, 3, 4, 5
DELETED_FILE, NEW_FILE, PREVIOUS_LOG_NUMBER = 6, 7, 9


@dataclass
class Version:
    """What is alive by the manifest: tables (number → smallest key), and the first log."""

    tables: dict[int, bytes] = field(default_factory=dict)
    log: int = 0
    previous_log: int = 0


class LevelDB:
    """A database open for reading.  Its tables are opened when iteration reaches them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = Path(path)
        self._length: int | None = None
        if not self.folder.is_dir():
            raise FileError(path, "is no folder" if self.folder.exists() else "does not exist")
        self.version = read_manifest(self._manifest())

    def __enter__(self) -> LevelDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing stays open between two iterations."""

    def __len__(self) -> int:
        """Return the number of records; the first call reads the whole database."""
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the live records: for each key the newest entry, unless it is a deletion."""
        last: bytes | None = None
        for (key, _, value), _ in self._entries():
            if key == last:
                continue
            last = key
            if value is not None:
                yield key, value

    def first(self) -> tuple[bytes, bytes]:
        """Return the record with the smallest key."""
        record = next(iter(self), None)
        if record is None:
            raise FileError(self.path, "is empty")
        return record

    def places(self) -> Iterator[tuple[bytes, int]]:
        """Yield the keys of the live records, and the table of each, or LOG."""
        last: bytes | None = None
        for (key, _, value), number in self._entries():
            if key != last and value is not None:
                yield key, number
            last = key

    def fetch(self, keys: Sequence[bytes], number: int) -> list[bytes]:
        """Return the values of live records that lie in one table, or in the log."""
        entries = self._unflushed() if number == LOG else self._lookup(number, keys)
        newest: dict[bytes, bytes | None] = {}
        for key, _, value in entries:
            newest.setdefault(key, value)
        values = [newest.get(key) for key in keys]
        if None in values:
            raise FileError(self.path, f"has lost record {keys[values.index(None)]!r}")
        return [value for value in values if value is not None]

    def _lookup(self, number: int, keys: Sequence[bytes]) -> list[Entry]:
        with self._open(number) as table:
            return table.find(keys)

    def _entries(self) -> Iterator[tuple[Entry, int]]:
        """Every entry of every source, by key, newest first; and the number of its table."""
        heap: list[tuple[bytes, int, int, Iterator[Entry], Entry | None]] = [
            # A table waits under its smallest key, and is opened when that comes up.
            (smallest, WAITING, number, self._table(number), None)
            for number, smallest in self.version.tables.items()
        ]
        heap.append((b"", WAITING, LOG, iter(self._unflushed()), None))
        heapq.heapify(heap)
        while heap:
            _, _, order, source, entry = heap[0]
            if entry is not None:
                yield entry, order
            following = next(source, None)
            if following is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (*following[:2], order, source, following))

    def _table(self, number: int) -> Iterator[Entry]:
        with self._open(number) as table:
            yield from table

    def _open(self, number: int) -> Table:
        for suffix in ("ldb", "sst"):
            path = self.folder / f"{number:06d}.{suffix}"
            if path.is_file():
                return Table(path)
        raise FileError(self.path, f"is incomplete: table {number:06d}.ldb is missing")

    def _unflushed(self) -> list[Entry]:
        entries: list[Entry] = []
        for path in sorted(self.folder.glob("*.log")):
            if not (path.stem.isascii() and path.stem.isdigit()):
                continue
            number = int(path.stem)
            if number >= self.version.log or number == self.version.previous_log:
                entries += replay(path)
        return sorted(entries, key=lambda entry: entry[:2])

    def _manifest(self) -> Path:
        current = self.folder / "CURRENT"
        if not current.is_file():
            raise FileError(self.path, "is no LevelDB: it has no file CURRENT")
        with open_table(current) as file:
            name = file.read(256).decode("latin-1").strip()
        manifest = self.folder / name
        if not MANIFEST_NAME.fullmatch(name) or not manifest.is_file():
            raise FileError(self.path, f"is no LevelDB: CURRENT names {name!r}, which is not there")
        return manifest


def read_manifest(path: Path) -> Version:
    """Return all edits of a manifest, applied in order (LevelDB: version_edit.cc)."""
    if path.stat().st_size > LARGEST_MANIFEST:
        raise FileError(path, "is too long for a manifest")
    version, record = Version(), None
    for record in log_records(path):
        try:
            apply_edit(version, record, path)
        except ValueError as error:
            raise FileError(path, f"is damaged: {error}") from error
    if record is None:
        raise FileError(path, "is cut short: no edit of it is whole")
    return version


def apply_edit(version: Version, record: bytes, path: Path) -> None:
    """Apply an edit: comparator, log numbers, and tables that came and went."""
    fields = Fields(record)
    while not fields.done:
        tag = fields.varint()
        if tag == COMPARATOR_NAME:
            name = fields.text()
            if name != COMPARATOR:
                raise FileError(path, f"orders its keys by {name!r}, which is not known here")
        elif tag == LOG_NUMBER:
            version.log = fields.varint()
        elif tag == PREVIOUS_LOG_NUMBER:
            version.previous_log = fields.varint()
        elif tag in (NEXT_FILE_NUMBER, LAST_SEQUENCE):
            fields.varint()
        elif tag == COMPACT_POINTER:
            _ = fields.varint(), fields.text()
        elif tag == DELETED_FILE:
            _level, number = fields.varint(), fields.varint()
            version.tables.pop(number, None)
        elif tag == NEW_FILE:
            _level, number, _size = fields.varint(), fields.varint(), fields.varint()
            version.tables[number] = fields.text()[:-8]
            fields.text()
        else:
            raise ValueError(f"an edit of kind {tag}")
