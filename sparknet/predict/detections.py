"""Outputs of any length for each record: detections, and masks as run lengths."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.loaders.image_decoding import open_image, upright_size
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.predict.binary import Binary
from sparknet.predict.output_columns import (
    Array,
    At,
    Collected,
    Fixed,
    Output,
    label_names,
    list_of,
    lists,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Ragged(Output):
    """An output whose column is an array of structs, any number of them for each record."""

    def collect(self, count: int) -> Collected:
        return _Lists(self, count)

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return list_of(pa.struct(self.fields()))

    @abstractmethod
    def fields(self) -> list[pa.Field]:
        """Return the fields of a struct."""

    @abstractmethod
    def structs_of(self, rows: Array, count: int, frames: Array | None) -> tuple[Array, Array]:
        """Return the number of structs of each of ``count`` records, and a row of numbers a
        struct.
        """

    @abstractmethod
    def structs(self, rows: Array) -> pa.Array:
        """Return the structs of rows of numbers."""

    def column_of(self, arrays: pa.Array, invalid: pa.Array | None) -> pa.Array:
        """Return the column of the records' arrays."""
        return arrays


class _Lists(Collected):
    def __init__(self, output: Ragged, count: int) -> None:
        self._output = output
        self._counts = np.zeros(count, np.int64)
        self._found: list[tuple[Array, Array]] = []

    def put(self, at: At, rows: Array, frames: Array | None) -> None:
        places = np.arange(len(self._counts))[at]
        counts, lists = self._output.structs_of(rows, len(places), frames)
        self._counts[places] = counts
        self._found.append((np.repeat(places, counts), lists))

    def arrow(self, valid: Array) -> pa.Array:
        import pyarrow as pa

        self._counts[~valid] = 0
        ends = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.int32)
        places = np.concatenate([part[0] for part in self._found] or [np.zeros(0, np.int64)])
        rows = np.concatenate([part[1] for part in self._found]) if self._found else None
        if rows is None:
            structs = pa.array([], pa.struct(self._output.fields()))
        else:
            order = np.argsort(places, kind="stable")
            structs = self._output.structs(rows[order[valid[places[order]]]])
        invalid = None if valid.all() else pa.array(~valid)
        return self._output.column_of(lists(structs, ends, invalid), invalid)


@dataclass(frozen=True)
class Detections(Ragged):
    """The boxes that a DetectionOutput found in a record."""

    names: tuple[str, ...] | None = field(default=None, repr=False)

    is_list = True

    def rows(self, made: Array, count: int) -> Array:
        return made.reshape(-1, made.shape[-1])

    def fields(self) -> list[pa.Field]:
        import pyarrow as pa

        label, name = pa.field("label", pa.int32(), False), pa.field("name", pa.string())
        numbers = ("score", "xmin", "ymin", "xmax", "ymax")
        return [label, name, *(pa.field(one, pa.float32(), False) for one in numbers)]

    def structs_of(self, rows: Array, count: int, frames: Array | None) -> tuple[Array, Array]:
        """Return the boxes as structs; a row with label -1 means a batch without detections."""
        boxes = rows[rows[:, 1] >= 0]
        index = boxes[:, 0].astype(np.int64)
        order = np.argsort(index, kind="stable")
        boxes, index = boxes[order].copy(), index[order]
        if frames is not None and len(boxes):
            frame = frames[index]
            boxes[:, 3::2] = boxes[:, 3::2] * frame[:, 2:3] + frame[:, 0:1]
            boxes[:, 4::2] = boxes[:, 4::2] * frame[:, 3:4] + frame[:, 1:2]
        return np.bincount(index, minlength=count), boxes[:, 1:]

    def structs(self, rows: Array) -> pa.Array:
        import pyarrow as pa

        labels = rows[:, 0].astype(np.int32)
        numbers = [pa.array(np.ascontiguousarray(rows[:, at], np.float32)) for at in range(1, 6)]
        columns = [pa.array(labels), label_names(labels, self.names), *numbers]
        return pa.StructArray.from_arrays(columns, fields=self.fields())


@dataclass(frozen=True)
class Mask(Fixed):
    """The class of each pixel, as a byte, in a struct (height, width, data)."""

    shape: tuple[int, ...] = ()
    """The blob's axes for one record: classes, height, width; or 1 x height x width of classes."""

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return sized_type("data", pa.binary())

    def parts(self, rows: Array) -> Sequence[Array]:
        boxes = pixels(rows, self.shape)
        if boxes.size and not 0 <= boxes.min() <= boxes.max() < 256:
            raise SparkError(
                f"blob '{self.blob}' has a class outside 0 to 255: ask for mask='runs'"
            )
        return (boxes.astype(np.uint8),)

    def made_of(self, parts: Sequence[Array], invalid: pa.Array | None) -> pa.Array:
        import pyarrow as pa

        count, length = parts[0].shape
        fixed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(length), count, [None, pa.py_buffer(parts[0].reshape(-1))]
        )
        return sized(self.shape, "data", fixed.cast(pa.binary()), invalid)


@dataclass(frozen=True)
class PixelRuns(Ragged):
    """The class of each pixel, in a struct (height, width, runs): row by row, an array of structs
    (label, length)."""

    shape: tuple[int, ...] = ()

    def arrow_type(self) -> pa.DataType:
        return sized_type("runs", super().arrow_type())

    def column_of(self, arrays: pa.Array, invalid: pa.Array | None) -> pa.Array:
        return sized(self.shape, "runs", arrays, invalid)

    def fields(self) -> list[pa.Field]:
        import pyarrow as pa

        return [pa.field("label", pa.int32(), False), pa.field("length", pa.int32(), False)]

    def structs_of(self, rows: Array, count: int, frames: Array | None) -> tuple[Array, Array]:
        flat = pixels(rows, self.shape)
        changes = np.ones(flat.shape, bool)
        changes[:, 1:] = flat[:, 1:] != flat[:, :-1]
        begins = np.flatnonzero(changes)
        lengths = np.diff(np.append(begins, flat.size))
        return changes.sum(1), np.stack([flat.reshape(-1)[begins], lengths], 1)

    def structs(self, rows: Array) -> pa.Array:
        import pyarrow as pa

        columns: list[Any] = [pa.array(rows[:, at].astype(np.int32)) for at in (0, 1)]
        return pa.StructArray.from_arrays(columns, fields=self.fields())


def sized_type(name: str, kind: pa.DataType) -> pa.DataType:
    """Return a struct of a picture's size and what it holds."""
    import pyarrow as pa

    sizes = [pa.field(one, pa.int32(), False) for one in ("height", "width")]
    return pa.struct([*sizes, pa.field(name, kind, False)])


def sized(shape: Sequence[int], name: str, values: pa.Array, invalid: pa.Array | None) -> pa.Array:
    import pyarrow as pa

    sizes = [pa.array(np.full(len(values), size, np.int32)) for size in shape[-2:]]
    kind = sized_type(name, values.type)
    return pa.StructArray.from_arrays([*sizes, values], fields=list(kind), mask=invalid)


def pixels(rows: Array, shape: Sequence[int]) -> Array:
    """Return the class of each pixel, a row for each record."""
    planes = rows.reshape(len(rows), -1, shape[-2] * shape[-1])
    return planes.argmax(1) if planes.shape[1] > 1 else np.rint(planes[:, 0]).astype(np.int64)


Size = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class BoxFrames:
    """The pictures of a column, and what is done to them before the net sees them."""

    column: str
    shape: tuple[int, ...]
    """The net's own picture: channels, height, width."""
    preprocessing: Preprocessing
    kinds: Binary
    """What tells raw pictures from encoded ones."""

    def frames(self, values: pa.Array) -> Array:
        """For each picture (left, top, width, height): where the net's picture lies in its own
        pixels."""
        net = self.shape[-2], self.shape[-1]
        frames = [frame(self.preprocessing, size, net) for size in self._sizes(values)]
        return np.array(frames, np.float64).reshape(-1, 4)

    def _sizes(self, values: pa.Array) -> list[Size]:
        import pyarrow.types as kind

        if kind.is_struct(values.type):
            sides = [values.field(name).to_pylist() for name in ("height", "width")]
            return list(zip(*sides, strict=True))
        return [self._size(value.as_py()) for value in values]

    def _size(self, data: bytes) -> Size:
        raw = self.kinds.raw_of(data)
        if raw is not None:
            return raw.shape[-2], raw.shape[-1]
        return encoded_size(data, self.preprocessing.upright)


def encoded_size(data: bytes, upright: bool) -> Size:
    """Return the size that an encoded picture says it has."""
    with open_image(data, "the record") as image:
        try:
            return upright_size(image, upright)
        except (OSError, ValueError, SyntaxError) as error:
            raise SparkError(f"the record has damaged EXIF data: {error}") from error


def frame(given: Preprocessing, size: Size, net: Size) -> tuple[float, float, float, float]:
    """(left, top, width, height) of the net's picture in the pixels of one of this size."""
    resized = given.resize or size
    scales = [new / old for new, old in zip(resized, size, strict=True)]
    if given.resize and given.resize_mode != "exact":
        scales = [(max if given.resize_mode == "shorter" else min)(scales)] * 2
    view = given.crop or resized
    spans: list[Any] = []
    for scale, old, new, part in zip(scales, size, resized, view, strict=True):
        # Where the whole picture begins in what the net sees.
        begin = (new - old * scale) / 2 - (new - part) / 2
        spans.append((-begin / scale, part / scale))
    (top, height), (column, width) = spans
    return column, top, width, height
