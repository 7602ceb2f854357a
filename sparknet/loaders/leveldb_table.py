"""LevelDB's tables: sorted records in compressed blocks (LevelDB: doc/table_format.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparknet.errors import FileError
from sparknet.loaders.crc32c import masked
from sparknet.loaders.leveldb_log import VALUE, Entry, Fields, age, opened
from sparknet.loaders.snappy import decompress

FOOTER = 48
TRAILER = 5
MAGIC = 0xDB4775248B80FB57
PLAIN, SNAPPY = 0, 1
LARGEST_BLOCK = 1 << 28
LONGEST_KEY = 1 << 13
"""Bytes; Caffe's keys are a number and the path of an image."""
ROOM_FOR_KEYS, MOST_GROWTH = 1 << 20, 16
"""The keys of a block may have so many bytes, and so many times the block's: each may repeat
the one before for next to nothing."""


class Table:
    """One table file; iteration gives its entries by key, newest first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = opened(path)
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
            for _, handle in self._handles():
                yield from self._entries(*handle)
        except ValueError as error:
            raise FileError(self.path, f"is damaged: {error}") from error

    def find(self, keys: Sequence[bytes]) -> list[Entry]:
        """The entries of the blocks that these keys lie in, or would."""
        try:
            index = list(self._handles())
            lasts = [last[:-8] for last, _ in index]
            # A key's entries can go on in the next block.
            first = {bisect_left(lasts, key) for key in keys}
            wanted = sorted(
                {at + more for at in first for more in (0, 1) if at + more < len(index)}
            )
            return [entry for at in wanted for entry in self._entries(*index[at][1])]
        except ValueError as error:
            raise FileError(self.path, f"is damaged: {error}") from error

    def _handles(self) -> Iterator[tuple[bytes, tuple[int, int]]]:
        """The places of the blocks, in order, each with a key that none of its keys exceeds."""
        end = 0
        for last, handle in _pairs(self._block(*self._index)):
            fields = Fields(handle)
            offset, size = fields.varint(), fields.varint()
            if offset < end:
                raise ValueError(f"the block at {offset} begins before another ends")
            end = offset + size
            yield last, (offset, size)

    def _entries(self, offset: int, size: int) -> Iterator[Entry]:
        before: tuple[bytes, int] | None = None
        for key, value in _pairs(self._block(offset, size)):
            entry = _entry(key, value)
            if before is not None and entry[:2] <= before:
                raise ValueError("its keys do not ascend")
            before = entry[:2]
            yield entry

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
        if size > LARGEST_BLOCK:
            raise ValueError(f"a block of {size} bytes")
        if offset + size + TRAILER > self._size:
            raise ValueError(f"a block at {offset} of {size} bytes in {self._size}")
        self._file.seek(offset)
        data = self._file.read(size + TRAILER)
        if len(data) != size + TRAILER:
            raise ValueError("a block is cut short")
        if masked(data[: size + 1]) != int.from_bytes(data[size + 1 :], "little"):
            raise ValueError(f"the block at {offset} does not fit its check sum")
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
    key, room = b"", ROOM_FOR_KEYS + MOST_GROWTH * len(block)
    while not fields.done:
        shared, fresh, size = fields.varint(), fields.varint(), fields.varint()
        if shared > len(key):
            raise ValueError("a key shares more than there is")
        room -= shared + fresh
        if shared + fresh > LONGEST_KEY or room < 0:
            raise ValueError(f"keys of up to {shared + fresh} bytes in a block of {len(block)}")
        key = key[:shared] + fields.take(fresh)
        yield key, fields.take(size)
