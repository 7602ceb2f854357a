"""The numbers of an ONNX file's constants, read past protobuf (docs/decisions/0003)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparknet.errors import FileError
from sparknet.native import NDArray
from sparknet.proto.byte_source import ByteSource
from sparknet.proto.wire import BYTES, WireField, header, read_field

Array = np.ndarray[Any, Any]

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9
LEAST = 1 << 12
"""Bytes of a constant that stays out of the message."""
MOST_FIELDS = 1 << 20
"""Entries of a graph and of its constants: hardly a model has a hundredth of that."""


class RawBytes(NamedTuple):
    """Where the bytes of a constant lie."""

    start: int
    size: int


def walk(source: ByteSource) -> tuple[bytes, list[RawBytes | None]]:
    """Return the skeleton of a model, and the place of each initializer's bytes, or None."""
    walker = _Stripper(source)
    return walker.message(0, source.size, (GRAPH, INITIALIZER)), walker.places


def room(size: int) -> Array:
    """Return bytes that the system gets back as soon as nobody holds them, if they are many."""
    return np.asarray(NDArray.empty(size, np.uint8).numpy())


def contiguous_transpose(matrix: Array) -> Array:
    """Return the transpose with its rows contiguous in memory."""
    other: Array = matrix.T
    if other.flags.c_contiguous:
        return other
    transposed: Array = room(matrix.nbytes).view(matrix.dtype).reshape(other.shape)
    transposed[...] = other
    return transposed


class _Stripper:
    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.places: list[RawBytes | None] = []
        self.fields = 0

    def message(self, start: int, stop: int, path: tuple[int, ...]) -> bytes:
        """Return a message whose constants lie down these fields."""
        if not path:
            return self.constant(start, stop)
        out: list[bytes] = []
        copied_to = position = start
        while position < stop:
            number, wire, begin, body, position = self.field(position, stop)
            if number != path[0] or wire != BYTES:
                continue
            inner = self.message(body, position, path[1:])
            out += [
                self.source.read(copied_to, begin - copied_to),
                header(number, len(inner)),
                inner,
            ]
            copied_to = position
        return b"".join([*out, self.source.read(copied_to, stop - copied_to)])

    def constant(self, start: int, stop: int) -> bytes:
        """Keep the last of several runs of bytes, as protobuf does."""
        values, position = [], start
        while position < stop:
            entry = self.field(position, stop)
            position = entry.stop
            if entry.number == RAW_DATA and entry.wire == BYTES:
                values.append(entry)
        large = bool(values) and values[-1].stop - values[-1].body >= LEAST
        self.places.append(
            RawBytes(values[-1].body, values[-1].stop - values[-1].body) if large else None
        )
        out, copied_to = [], start
        for entry in values if large else ():
            out.append(self.source.read(copied_to, entry.start - copied_to))
            copied_to = entry.stop
        return b"".join([*out, self.source.read(copied_to, stop - copied_to)])

    def field(self, position: int, stop: int) -> WireField:
        self.fields += 1
        if self.fields > MOST_FIELDS:
            raise FileError(self.source.name, f"has more than {MOST_FIELDS} nodes and constants")
        try:
            return read_field(self.source, position, stop)
        except FileError as error:
            if isinstance(error.__cause__, OSError):
                raise
            raise FileError(
                self.source.name, f"is no ONNX model, or damaged or cut short at byte {position}"
            ) from None
