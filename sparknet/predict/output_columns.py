"""Outputs: what becomes of a net's blobs in a DataFrame, each kind with its type and values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]
At = slice | Array
"""Places of records in a column."""


@dataclass(frozen=True)
class Output(ABC):
    """A blob, and the column that is made of it."""

    blob: str
    column: str
    axis: int = 0
    """The axis of the records in the blob."""

    is_list = False
    """Whether a record has any number of rows in the blob, each with its record's index."""
    is_vector = False
    """Whether Spark makes a vector of the column's array."""

    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """Return the column's type, which does not depend on the data."""

    @abstractmethod
    def collect(self, count: int) -> Collected:
        """Return an empty column of ``count`` records."""

    def rows(self, made: Array, count: int) -> Array:
        """Return the blob's values with one row per record."""
        if not self.axis:
            return made.reshape(count, -1)
        return np.ascontiguousarray(np.moveaxis(made, self.axis, 0)).reshape(count, -1)


class Collected(ABC):
    """The column of one output as it is filled."""

    @abstractmethod
    def put(self, at: At, rows: Array, frames: Array | None) -> None:
        """Put the values of the records at these places.

        ``frames`` has a row (left, top, width, height) for each: where 0 to 1 of the net's picture
        lie in the record's own, in pixels.
        """

    @abstractmethod
    def arrow(self, valid: Array) -> pa.Array:
        """Return the column; null where a record is not valid."""


# -- as many values for each record ----------------------------------------------------------


class Fixed(Output):
    """An output with as many values for each record."""

    @abstractmethod
    def parts(self, rows: Array) -> Sequence[Array]:
        """Return what is kept of records."""

    @abstractmethod
    def made_of(self, parts: Sequence[Array], invalid: pa.Array | None) -> pa.Array:
        """Return the column of what was kept."""

    def collect(self, count: int) -> Collected:
        return _Buffers(self, count)


class _Buffers(Collected):
    """Memory of the whole column, which each batch fills in part: values are copied once."""

    def __init__(self, output: Fixed, count: int) -> None:
        self._output, self._count = output, count
        self._parts: list[Array] = []

    def put(self, at: At, rows: Array, frames: Array | None) -> None:
        parts = self._output.parts(rows)
        if not self._parts:
            shapes = [(self._count, *part.shape[1:]) for part in parts]
            self._parts = [np.zeros(s, p.dtype) for s, p in zip(shapes, parts, strict=True)]
        for buffer, part in zip(self._parts, parts, strict=True):
            buffer[at] = part

    def arrow(self, valid: Array) -> pa.Array:
        import pyarrow as pa

        if not self._parts:
            return pa.nulls(self._count, self._output.arrow_type())
        return self._output.made_of(self._parts, None if valid.all() else pa.array(~valid))


class Scalar(Fixed):
    """A blob with one value per record."""

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.float32()

    def parts(self, rows: Array) -> Sequence[Array]:
        return (rows[:, 0],)

    def made_of(self, parts: Sequence[Array], invalid: pa.Array | None) -> pa.Array:
        import pyarrow as pa

        return pa.array(parts[0], mask=None if invalid is None else np.asarray(invalid))


class Best(Scalar):
    """The index of the largest value, as the double that evaluators of pyspark.ml read."""

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.float64()

    def parts(self, rows: Array) -> Sequence[Array]:
        return (rows.argmax(1).astype(np.float64),)


class Values(Fixed):
    """A blob's values as an array."""

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return list_of(pa.float32())

    def parts(self, rows: Array) -> Sequence[Array]:
        return (rows,)

    def made_of(self, parts: Sequence[Array], invalid: pa.Array | None) -> pa.Array:
        import pyarrow as pa

        count, length = parts[0].shape
        return even_lists(pa.array(parts[0].reshape(-1)), count, length, invalid)


class Vector(Values):
    """A blob's values as a vector of pyspark.ml, which Spark makes of an array."""

    is_vector = True


@dataclass(frozen=True)
class Classes(Fixed):
    """The classes with the highest values: an array of (label, name, score), the highest first."""

    top: int = 1
    names: tuple[str, ...] | None = field(default=None, repr=False)

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return list_of(pa.struct(self._fields()))

    def parts(self, rows: Array) -> Sequence[Array]:
        """Return the best labels and their values; of equal values the lower label is first."""
        labels = np.argsort(-rows, axis=1, kind="stable")[:, : self.top]
        return labels.astype(np.int32), np.take_along_axis(rows, labels, 1)

    def made_of(self, parts: Sequence[Array], invalid: pa.Array | None) -> pa.Array:
        import pyarrow as pa

        labels, scores = (part.reshape(-1) for part in parts)
        columns = [pa.array(labels), label_names(labels, self.names), pa.array(scores)]
        classes = pa.StructArray.from_arrays(columns, fields=self._fields())
        count, length = parts[0].shape
        return even_lists(classes, count, length, invalid)

    def _fields(self) -> list[pa.Field]:
        import pyarrow as pa

        label, name = pa.field("label", pa.int32(), False), pa.field("name", pa.string())
        return [label, name, pa.field("score", pa.float32(), False)]


# -- values and shapes -----------------------------------------------------------------------


def list_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of an array without nulls, as Spark writes it."""
    import pyarrow as pa

    return pa.list_(pa.field("element", kind, False))


def even_lists(values: pa.Array, count: int, length: int, invalid: pa.Array | None) -> pa.Array:
    """Return a column of ``count`` arrays of ``length`` values each."""
    ends = np.arange(0, (count + 1) * length, max(length, 1), dtype=np.int32)[: count + 1]
    if not length:
        ends = np.zeros(count + 1, np.int32)
    return lists(values, ends, invalid)


def lists(values: pa.Array, ends: Array, invalid: pa.Array | None) -> pa.Array:
    import pyarrow as pa

    kind = list_of(values.type)
    return pa.ListArray.from_arrays(pa.array(ends), values, type=kind, mask=invalid)


def label_names(labels: Array, names: Sequence[str] | None) -> pa.Array:
    """Return the names of labels; null where there are none."""
    import pyarrow as pa

    if names is None:
        return pa.nulls(len(labels), pa.string())
    has_name = (labels >= 0) & (labels < len(names))
    return pa.array(names, pa.string()).take(pa.array(labels, pa.int64(), mask=~has_name))
