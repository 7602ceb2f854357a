"""Parts: as many rows as go through a net at a time, read from Arrow batches, and bad rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError, SparkNetError
from sparknet.spark.column_types import plain
from sparknet.spark.columns import arrays
from sparknet.spark.outputs import Array
from sparknet.spark.places import BAD, at_place

if TYPE_CHECKING:
    import pyarrow as pa

    from sparknet.spark.prediction import Prediction


@dataclass(frozen=True)
class Part:
    """Rows of an Arrow batch of results that go through the net at a time."""

    rows: pa.RecordBatch
    """The whole batch of results' rows."""
    begin: int
    """The first row of this part."""
    is_last: bool
    at: Array
    """The rows that can be read."""
    values: dict[str, Array]
    errors: dict[int, SparkNetError]
    frames: Array | None
    places: Any
    """The place of a row, for messages."""

    def singly(self) -> Iterator[Part]:
        """The rows one by one."""
        for number, at in enumerate(self.at):
            one = slice(number, number + 1)
            values = {name: values[one] for name, values in self.values.items()}
            frames = None if self.frames is None else self.frames[one]
            yield Part(
                self.rows, self.begin, False, np.array([at]), values, {}, frames, self.places
            )

    def placed(self, error: SparkNetError) -> SparkNetError:
        """The error with the place of the first row."""
        return at_place(error, self.places(int(self.at[0])))


class Reader:
    """Reads the rows of one partition."""

    def __init__(self, given: Prediction, partition: int) -> None:
        self._given, self._partition = given, partition
        self._done = 0

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
        given, length = self._given, self._given.batch
        for batch in batches:
            if not batch.num_rows:
                yield from self._piece(batch)
            at = 0
            while at < batch.num_rows:
                yield from self._piece(batch.slice(at, length))
                at += length
                length = min(2 * length, max(given.most, given.batch))

    def _piece(self, rows: pa.RecordBatch) -> Iterator[Part]:
        size = self._given.batch
        for begin in range(0, max(rows.num_rows, 1), size):
            yield self._part(rows, begin, rows.slice(begin, size))
        self._done += rows.num_rows

    def _part(self, rows: pa.RecordBatch, begin: int, part: pa.RecordBatch) -> Part:
        given, before = self._given, self._done
        numbers = np.arange(begin, begin + part.num_rows)

        def place(number: int) -> str:
            return self._place(rows, number, before)

        def made(at: Array, values: Any, errors: dict[int, SparkNetError], taken: Any) -> Part:
            frames = None
            if given.pictures is not None and len(at):
                frames = given.pictures.frames(taken.column(plain(given.pictures.column)))
            last = begin + given.batch >= rows.num_rows
            return Part(rows, begin, last, at, values, errors, frames, place)

        try:
            values = arrays(part, given.mapping, given.shapes)
            return made(numbers, values, {}, part)
        except BAD:
            pass
        good, values, errors = self._singly(part)
        if errors and given.invalid == "raise":
            first = min(errors)
            raise at_place(errors[first], place(begin + first)) from None
        moved = {begin + number: error for number, error in errors.items()}
        return made(numbers[good], values, moved, part.take(good) if good else part)

    def _singly(
        self, part: pa.RecordBatch
    ) -> tuple[list[int], dict[str, Array], dict[int, SparkNetError]]:
        """The rows that can be read, together, and the errors of the others.

        Rows that can be read, but have another shape than the first, are among the others.
        """
        given = self._given
        errors: dict[int, SparkNetError] = {}
        found: dict[int, dict[str, Array]] = {}
        shapes: dict[str, Any] | None = None
        for number in range(part.num_rows):
            try:
                values = arrays(part.slice(number, 1), given.mapping, given.shapes)
            except BAD as error:
                errors[number] = error
                continue
            these = {name: one.shape for name, one in values.items()}
            shapes = shapes or these
            if these == shapes:
                found[number] = values
            else:
                errors[number] = SparkError(
                    f"the row is {_told(these)}, and one before it {_told(shapes)}: resize or crop"
                )
        together = {
            name: np.concatenate([values[name] for values in found.values()])
            for name in (shapes or {})
        }
        return list(found), together, errors

    def _place(self, rows: pa.RecordBatch, number: int, before: int) -> str:
        """What names a row: its key or path, an image's origin, or its number in the partition."""
        import pyarrow as pa

        given = self._given
        if given.key is not None:
            value = rows.column(plain(given.key))[number].as_py()
            if value is not None:
                return str(value) if given.key == PATH else f"{given.key} {value}"
        for name in given.mapping.values():
            column = rows.column(plain(name))
            if pa.types.is_struct(column.type) and column.type.get_field_index("origin") >= 0:
                value = column.field("origin")[number].as_py() if column[number].is_valid else None
                if value:
                    return str(value)
        return f"partition {self._partition}, row {before + number}"


PATH = "path"
"""The column of Spark's file sources that names a row's file."""


def _told(shapes: dict[str, Any]) -> str:
    return ", ".join(" x ".join(map(str, shape[1:])) or "a number" for shape in shapes.values())
