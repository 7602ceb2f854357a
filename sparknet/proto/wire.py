"""Protocol-buffer bytes taken apart: a skeleton for protobuf, and where each blob's floats lie."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from sparknet.errors import FileError
from sparknet.proto.byte_source import ByteSource

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

# A skeleton is a net's description. The largest known (ResNet-1001) has 3,500 layers; a message
# takes a hundred times its bytes when it is parsed, so that more than this is a trap.
MAX_MESSAGES = 50_000
MAX_FIELDS = 250_000
MAX_DESCRIPTION = 8 << 20

Kind: TypeAlias = "dict[int, Kind | None]"
"""The fields of a message that lead to blobs; None stands for a blob itself."""

BLOB_FIELDS = {5: ("data", 4), 6: ("diff", 4), 8: ("double_data", 8), 9: ("double_diff", 8)}
INT8 = 5300
BLOB_FIELDS |= {INT8: ("int8_data", 1), 12: ("raw_data", 1), 13: ("raw_diff", 1)}
VOLUME = 5
"""Sizes of a blob of C3D."""
NET: Kind = {100: {7: None}, 2: {6: None, 1: {50: None}}}
STATE: Kind = {3: None}


class WireField(NamedTuple):
    """One field on the wire; `body` is where its content begins."""

    number: int
    wire: int
    start: int
    body: int
    stop: int


class Piece(NamedTuple):
    """A run of numbers: `lead` bytes (a tag, or none) before each of `width` bytes."""

    start: int
    size: int
    lead: int
    width: int


@dataclass
class Payload:
    """Where one blob's numbers lie, by field name."""

    pieces: dict[str, list[Piece]] = field(default_factory=dict)

    def count(self, name: str) -> int:
        return sum(piece.size for piece in self.pieces.get(name, ()))


def encode_varint(value: int) -> bytes:
    """Return a non-negative integer, seven bits at a time."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def header(number: int, length: int) -> bytes:
    """Tag and length of a length-delimited field."""
    return encode_varint(number << 3 | BYTES) + encode_varint(length)


def read_field(source: ByteSource, position: int, stop: int) -> WireField:
    """Return the field at `position`, checked to end at or before `stop`."""
    head = source.peek(position, min(20, stop - position))
    tag, at = _varint(source, head, 0)
    number, wire = tag >> 3, tag & 7
    if not 0 < number < 1 << 29:
        raise FileError(source.name, f"field number {number} at byte {position} is not valid")
    body = position + at
    if wire == VARINT:
        end = position + _varint(source, head, at)[1]
    elif wire == BYTES:
        length, at = _varint(source, head, at)
        body = position + at
        end = body + length
    elif wire in (FIXED32, FIXED64):
        end = body + (4 if wire == FIXED32 else 8)
    else:
        raise FileError(
            source.name,
            f"is no binary file of Caffe's: wire type {wire} at byte {position} is unknown",
        )
    if end > stop:
        raise FileError(
            source.name,
            f"is cut short or damaged: field {number} at byte {position} ends at byte {end}, "
            f"past byte {stop}",
        )
    return WireField(number, wire, position, body, end)


def walk(source: ByteSource, kind: Kind | None) -> tuple[bytes, list[Payload]]:
    """Return the skeleton of a message, where each blob's float is its place, and these places."""
    walker = _Walker(source)
    if kind is None:
        return walker.blob(0, source.size), walker.payloads
    return walker.message(0, source.size, kind), walker.payloads


class _Walker:
    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.payloads: list[Payload] = []
        self.messages = self.fields = 0
        self.described = 0

    def message(self, start: int, stop: int, kind: Kind) -> bytes:
        out: list[bytes] = []
        copied_to = position = start
        while position < stop:
            entry = self.field(position, stop)
            position = entry.stop
            if entry.wire != BYTES or entry.number not in kind:
                continue
            out.append(self.keep(copied_to, entry.start))
            self.enter()
            inner_kind = kind[entry.number]
            if inner_kind is None:
                inner = self.blob(entry.body, entry.stop)
            else:
                inner = self.message(entry.body, entry.stop, inner_kind)
            out += [header(entry.number, len(inner)), inner]
            copied_to = position
        out.append(self.keep(copied_to, stop))
        return b"".join(out)

    def blob(self, start: int, stop: int) -> bytes:
        payload = Payload()
        out = [header(5, 4), struct.pack("<f", len(self.payloads))]
        self.payloads.append(payload)
        shift, position = 0, start
        volume = self.volume(start, stop)
        if volume:
            (shape, position), shift = volume, 1
            out.append(shape)
        copied_to = position
        while position < stop:
            entry = self.field(position, stop)
            piece = self.piece(entry, stop, shift)
            position = entry.stop
            if piece is None:
                continue
            payload.pieces.setdefault(BLOB_FIELDS[entry.number - shift][0], []).append(piece)
            out.append(self.keep(copied_to, entry.start))
            position = max(position, piece.start + piece.size * (piece.lead + piece.width))
            copied_to = position
        out.append(self.keep(copied_to, stop))
        return b"".join(out)

    def volume(self, start: int, stop: int) -> tuple[bytes, int] | None:
        """Return the shape of a blob of C3D, of five sizes, and where its numbers begin."""
        sizes, position, last = [0] * VOLUME, start, 0
        while position < stop and last < VOLUME:
            entry = self.field(position, stop)
            if entry.wire != VARINT or not last < entry.number <= VOLUME:
                return None
            last, position = entry.number, entry.stop
            digits = self.source.read(entry.body, entry.stop - entry.body)
            sizes[last - 1] = _varint(self.source, digits, 0)[0]
        if last < VOLUME:
            return None
        if sizes[:3] == [1, 1, 1]:
            # A matrix or a vector: in Caffe's old spelling, which fits fewer axes too.
            pairs = zip((1, 2, 3, 4), (1, 1, *sizes[3:]), strict=True)
            return b"".join(encode_varint(n << 3) + encode_varint(s) for n, s in pairs), position
        dims = b"".join(map(encode_varint, sizes))
        inner = header(1, len(dims)) + dims
        return header(7, len(inner)) + inner, position

    def piece(self, entry: WireField, stop: int, shift: int = 0) -> Piece | None:
        """Return the numbers in a field of a blob, with those of the same tag that follow it."""
        if entry.number - shift not in BLOB_FIELDS:
            return None
        width = BLOB_FIELDS[entry.number - shift][1]
        if width == 1 and entry.wire != BYTES:
            return None
        if entry.wire == BYTES:
            count, rest = divmod(entry.stop - entry.body, width)
            if rest:
                raise FileError(
                    self.source.name,
                    f"is damaged: {rest} bytes too many in the numbers at byte {entry.body}",
                )
            return Piece(entry.body, count, 0, width)
        if entry.wire != (FIXED32 if width == 4 else FIXED64):
            return None
        if entry.body - entry.start != 1:
            return Piece(entry.body, 1, 0, width)
        return Piece(entry.start, self.run(entry, stop), 1, width)

    def run(self, entry: WireField, stop: int) -> int:
        """Return how many unpacked numbers with the tag of `entry` follow each other."""
        step, tag = entry.stop - entry.start, entry.number << 3 | entry.wire
        count, block = 1, 16
        while True:
            start = entry.start + count * step
            most = min(block, (stop - start) // step)
            if most <= 0:
                return count
            data = np.frombuffer(self.source.read(start, most * step), np.uint8)
            other = np.flatnonzero(data[::step] != tag)
            if len(other):
                return count + int(other[0])
            count += most
            block = min(block * 4, 1 << 20)

    def enter(self) -> None:
        self.messages += 1
        if self.messages > MAX_MESSAGES:
            raise FileError(
                self.source.name, f"has more than {MAX_MESSAGES} layers and blobs: not Caffe's"
            )

    def field(self, position: int, stop: int) -> WireField:
        self.fields += 1
        if self.fields > MAX_FIELDS:
            raise FileError(self.source.name, f"has more than {MAX_FIELDS} fields: not Caffe's")
        return read_field(self.source, position, stop)

    def keep(self, start: int, stop: int) -> bytes:
        self.described += stop - start
        if self.described > MAX_DESCRIPTION:
            raise FileError(
                self.source.name,
                f"has more than {MAX_DESCRIPTION >> 20} MiB beside its weights: not Caffe's",
            )
        return self.source.read(start, stop - start)


def load(source: ByteSource, pieces: list[Piece], target: npt.NDArray[np.float32]) -> None:
    """Fills a flat array with the numbers of `pieces`, doubles rounded to floats."""
    done = 0
    for piece in pieces:
        part = target[done : done + piece.size]
        done += piece.size
        if piece.size and (piece.lead, piece.width) == (0, 4):
            source.fill(piece.start, part.data.cast("B"))
            if sys.byteorder == "big":
                part.byteswap(inplace=True)
        else:
            _load_strided(source, piece, part)


def load_bytes(
    source: ByteSource, pieces: list[Piece], target: npt.NDArray[np.float32], dtype: str
) -> None:
    """Fills a flat array with numbers of another type, which lie in whole pieces."""
    done, width = 0, np.dtype(dtype).itemsize
    block = (1 << 20) * width
    for piece in pieces:
        for first in range(0, piece.size, block):
            raw = source.read(piece.start + first, min(block, piece.size - first))
            with np.errstate(over="ignore", invalid="ignore"):
                target[done : done + len(raw) // width] = np.frombuffer(raw, dtype)
            done += len(raw) // width


def _load_strided(source: ByteSource, piece: Piece, target: npt.NDArray[np.float32]) -> None:
    step, block = piece.lead + piece.width, 1 << 20
    for first in range(0, piece.size, block):
        count = min(block, piece.size - first)
        raw = np.frombuffer(source.read(piece.start + first * step, count * step), np.uint8)
        numbers = np.ascontiguousarray(raw.reshape(count, step)[:, piece.lead :])
        with np.errstate(over="ignore", invalid="ignore"):
            target[first : first + count] = numbers.view(f"<f{piece.width}")[:, 0]


def _varint(source: ByteSource, head: bytes, at: int) -> tuple[int, int]:
    """Return the value at `head[at]` and the place after it: at most ten bytes, 64 bits."""
    value = 0
    for index, byte in enumerate(head[at : at + 10]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value & (1 << 64) - 1, at + index + 1
    raise FileError(source.name, "is cut short or damaged: a number does not end")
