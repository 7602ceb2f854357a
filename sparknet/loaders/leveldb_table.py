"""LevelDB's files: tables of sorted records in compressed blocks, and logs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from sparknet.errors import FileError
from sparknet.native.transform import crc32c, snappy_decode
from sparknet.proto.byte_source import open_file


def masked(data: bytes) -> int:
    """Return a checksum as LevelDB stores it: turned by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


LARGEST = 1 << 28
MOST_GROWTH = 32
"""No snappy element makes more than about 22 bytes out of one."""


def decompress(data: bytes) -> bytes:
    """Return the plain bytes; ValueError where the data is damaged, or makes more than 256 MiB."""
    size, at = _varint(data)
    if size > MOST_GROWTH * len(data):
        raise ValueError(f"{len(data)} bytes cannot hold {size}")
    if size > LARGEST:
        raise ValueError(f"it unpacks to {size} bytes")
    return snappy_decode(data[at:], size)


def _varint(data: bytes) -> tuple[int, int]:
    value = 0
    for at in range(min(len(data), 5)):
        value |= (data[at] & 0x7F) << 7 * at
        if data[at] < 0x80:
            return value, at + 1
    raise ValueError("no length")


Entry = tuple[bytes, int, "bytes | None"]
"""Key, age (the newest is the smallest), value; None marks a deletion."""

BLOCK = 1 << 15
HEADER = 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
DELETION, VALUE = 0, 1


class Fields:
    """Varints and byte strings, one after the other; ValueError where one is cut short."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    @property
    def done(self) -> bool:
        return self.at >= len(self.data)

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            if self.done:
                break
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number is cut short")

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise ValueError(f"{size} bytes announced, {len(self.data) - self.at} there")
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> bytes:
        return self.take(self.varint())


def age(sequence: int, kind: int) -> int:
    return -(sequence << 8 | kind)


def log_records(path: Path) -> Iterator[bytes]:
    """Yield the whole records of a log; one that its writer did not finish is left out."""
    record: list[bytes] | None = None
    with open_table(path) as file:
        while block := file.read(BLOCK):
            for kind, piece in _pieces(block, path):
                if kind == FULL:
                    record = None
                    yield piece
                elif kind == FIRST:
                    record = [piece]
                elif record is not None:
                    record.append(piece)
                    if kind == LAST:
                        yield b"".join(record)
                        record = None


def open_table(path: Path) -> BinaryIO:
    return open_file(path)


def _pieces(block: bytes, path: Path) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + HEADER <= len(block):
        size, kind = int.from_bytes(block[at + 4 : at + 6], "little"), block[at + 6]
        if kind == 0 and size == 0:
            return
        if not FULL <= kind <= LAST:
            raise FileError(path, f"is damaged: a record of kind {kind}")
        check_sum = int.from_bytes(block[at : at + 4], "little")
        at += HEADER
        if at + size > len(block):
            if len(block) == BLOCK:
                raise FileError(path, "is damaged: a record reaches past its block")
            return
        if masked(block[at - 1 : at + size]) != check_sum:
            raise FileError(path, "is damaged: a record does not fit its check sum")
        yield kind, block[at : at + size]
        at += size


def replay(path: Path) -> Iterator[Entry]:
    """Yield the writes that a write-ahead log holds (LevelDB: write_batch.cc)."""
    for record in log_records(path):
        try:
            yield from _batch(record)
        except ValueError as error:
            raise FileError(path, f"is damaged: {error}") from error


def _batch(record: bytes) -> Iterator[Entry]:
    fields = Fields(record)
    sequence = int.from_bytes(fields.take(8), "little")
    fields.take(4)
    while not fields.done:
        kind = fields.take(1)[0]
        if kind > VALUE:
            raise ValueError(f"a write of kind {kind}")
        key = fields.text()
        yield key, age(sequence, kind), fields.text() if kind == VALUE else None
        sequence += 1


FOOTER = 48
TRAILER = 5
MAGIC = 0xDB4775248B80FB57
PLAIN, SNAPPY = 0, 1
LARGEST_BLOCK = 1 << 28
LONGEST_KEY = 1 << 13
"""Bytes; Caffe's keys are a number and the path of an image."""
ROOM_FOR_KEYS, KEY_GROWTH = 1 << 20, 16
"""The keys of a block may have so many bytes, and so many times the block's: each may repeat
the one before for next to nothing."""


class Table:
    """One table file; iteration gives its entries by key, newest first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_table(path)
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
        """Return the entries of the blocks that these keys lie in, or would."""
        try:
            index = list(self._handles())
            lasts = [last[:-8] for last, _ in index]
            # A key's entries can go on in the next block.
            first = {bisect_left(lasts, key) for key in keys}
            targets = sorted(
                {at + more for at in first for more in (0, 1) if at + more < len(index)}
            )
            return [entry for at in targets for entry in self._entries(*index[at][1])]
        except ValueError as error:
            raise FileError(self.path, f"is damaged: {error}") from error

    def _handles(self) -> Iterator[tuple[bytes, tuple[int, int]]]:
        """Yield the blocks' places in order, each with a key not below any of its keys."""
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
    key, room = b"", ROOM_FOR_KEYS + KEY_GROWTH * len(block)
    while not fields.done:
        shared, fresh, size = fields.varint(), fields.varint(), fields.varint()
        if shared > len(key):
            raise ValueError("a key shares more than there is")
        room -= shared + fresh
        if shared + fresh > LONGEST_KEY or room < 0:
            raise ValueError(f"keys of up to {shared + fresh} bytes in a block of {len(block)}")
        key = key[:shared] + fields.take(fresh)
        yield key, fields.take(size)
