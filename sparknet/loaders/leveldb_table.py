"""LevelDB's tables: sorted records in compressed blocks (LevelDB: doc/table_format.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparknet.errors import FileError
from sparknet.loaders.leveldb_log import VALUE, Entry, Fields, age
from sparknet.loaders.snappy import decompress

FOOTER = 48
TRAILER = 5
MAGIC = 0xDB4775248B80FB57
PLAIN, SNAPPY = 0, 1


class Table:
    """One table file; iteration gives its entries by key, newest first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        try:
            self._size = path.stat().st_size
            self._index = self._find_index()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Entry]:
        try:
            for _, handle in _pairs(self._block(*self._index)):
                yield from self._entries(handle)
        except ValueError as error:
            raise FileError(self.path, f"is damaged: {error}") from error

    def find(self, keys: Sequence[bytes]) -> list[Entry]:
        """The entries of the blocks that these keys lie in, or would."""
        try:
            index = [(last[:-8], handle) for last, handle in _pairs(self._block(*self._index))]
            lasts = [last for last, _ in index]
            # A key's entries can go on in the next block.
            first = {bisect_left(lasts, key) for key in keys}
            wanted = sorted(
                {at + more for at in first for more in (0, 1) if at + more < len(index)}
            )
            return [entry for at in wanted for entry in self._entries(index[at][1])]
        except ValueError as error:
            raise FileError(self.path, f"is damaged: {error}") from error

    def _entries(self, handle: bytes) -> Iterator[Entry]:
        fields = Fields(handle)
        for key, value in _pairs(self._block(fields.varint(), fields.varint())):
            yield _entry(key, value)

    def _find_index(self) -> tuple[int, int]:
        if self._size < FOOTER:
            raise FileError(self.path, "is cut short: no room for a footer")
        self._file.seek(self._size - FOOTER)
        footer = self._file.read(FOOTER)
        if int.from_bytes(footer[-8:], "little") != MAGIC:
            raise FileError(self.path, "is no LevelDB table, or cut short")
        fields = Fields(footer[:-8])
        try:
            _ = fields.varint(), fields.varint()
            return fields.varint(), fields.varint()
        except ValueError as error:
            raise FileError(self.path, f"is damaged: {error}") from error

    def _block(self, offset: int, size: int) -> bytes:
        if offset + size + TRAILER > self._size:
            raise ValueError(f"a block at {offset} of {size} bytes in {self._size}")
        self._file.seek(offset)
        data = self._file.read(size + 1)
        if len(data) != size + 1:
            raise ValueError("a block is cut short")
        if data[size] == PLAIN:
            return data[:size]
        if data[size] == SNAPPY:
            return decompress(data[:size])
        raise ValueError(f"compression {data[size]} is not known")


def _entry(key: bytes, value: bytes) -> Entry:
    if len(key) < 8:
        raise ValueError("a key is cut short")
    packed = int.from_bytes(key[-8:], "little")
    sequence, kind = packed >> 8, packed & 0xFF
    if kind > VALUE:
        raise ValueError(f"an entry of kind {kind}")
    return key[:-8], age(sequence, kind), value if kind == VALUE else None


def _pairs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a block; a key shares its beginning with the one before."""
    if len(block) < 4:
        raise ValueError("a block is cut short")
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise ValueError(f"{restarts} restart points in {len(block)} bytes")
    fields = Fields(block[:end])
    key = b""
    while not fields.done:
        shared, fresh, size = fields.varint(), fields.varint(), fields.varint()
        if shared > len(key):
            raise ValueError("a key shares more than there is")
        key = key[:shared] + fields.take(fresh)
        yield key, fields.take(size)
