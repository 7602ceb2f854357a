"""LevelDB's logs: the manifest and the write-ahead logs (LevelDB: doc/log_format.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sparknet.errors import FileError
from sparknet.loaders.crc32c import masked
from sparknet.proto.byte_source import open_file

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
    """The whole records of a log; one that its writer did not finish is left out."""
    record: list[bytes] | None = None
    with opened(path) as file:
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


def opened(path: Path) -> BinaryIO:
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
    """The writes that a write-ahead log holds (LevelDB: write_batch.cc)."""
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
