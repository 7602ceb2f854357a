"""Parts: as many rows as go through a net at a time, read from Arrow batches, and bad rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkNetError
from sparknet.spark.column_types import plain
from sparknet.spark.columns import arrays
from sparknet.spark.outputs import Array
from sparknet.spark.places import BAD, at_place

if TYPE_CHECKING:
    import pyarrow as pa

    from sparknet.spark.prediction import Prediction
    from sparknet.spark.texts import Texts


@dataclass(frozen=True)
class RowPart:
    """Rows of an Arrow batch of results that go through the net at a time."""

    rows: pa.RecordBatch
    """The whole batch of results' rows."""
    is_last: bool
    at: Array
    """The rows that can be read."""
    values: dict[str, Array]
    errors: dict[int, SparkNetError]
    frames: Array | None
    places: Any
    """The place of a row, for messages."""

    def singly(self) -> Iterator[RowPart]:
        """The rows one by one."""
        for number, at in enumerate(self.at):
            one = slice(number, number + 1)
            values = {name: values[one] for name, values in self.values.items()}
            frames = None if self.frames is None else self.frames[one]
            yield RowPart(self.rows, False, np.array([at]), values, {}, frames, self.places)

    def placed(self, error: SparkNetError) -> SparkNetError:
        """The error with the place of the first row."""
        return at_place(error, self.places(int(self.at[0])))


@dataclass(frozen=True)
class _Group:
    """Rows of equal shapes."""

    at: Array
    values: dict[str, Array]
    frames: Array | None

    @classmethod
    def joined(cls, parts: Sequence[_Group]) -> _Group:
        values = {
            name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values
        }
        frames = [part.frames for part in parts if part.frames is not None]
        at = np.concatenate([part.at for part in parts])
        return cls(at, values, np.concatenate(frames) if frames else None)


class RowReader:
    """Reads the rows of one partition, or those that are no partition's."""

    def __init__(self, given: Prediction, partition: int | None) -> None:
        self._given, self._partition = given, partition
        self._done = 0

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[RowPart]:
        given, length = self._given, self._given.batch
        for batch in batches:
            if not batch.num_rows:
                yield from self._piece(batch)
            at = 0
            while at < batch.num_rows:
                yield from self._piece(batch.slice(at, length))
                at += length
                length = min(2 * length, max(given.most, given.batch))

    def _piece(self, rows: pa.RecordBatch) -> Iterator[RowPart]:
        size = self._given.batch
        if self._given.texts is not None:
            yield from self._texts(rows, self._given.texts)
            self._done += rows.num_rows
            return
        for begin in range(0, max(rows.num_rows, 1), size):
            yield from self._parts(rows, begin, rows.slice(begin, size))
        self._done += rows.num_rows

    def _texts(self, rows: pa.RecordBatch, texts: Texts) -> Iterator[RowPart]:
        """Rows of about as many tokens together, so that there is little padding."""
        given, before = self._given, self._done

        def place(number: int) -> str:
            return self._place(rows, number, before)

        (column,) = given.mapping.values()
        found, errors = texts.read(rows.column(plain(column)), column)
        bad = min(errors) if errors and given.invalid == "raise" else None
        good = sorted(set(range(len(found))[:bad]) - errors.keys(), key=lambda row: len(found[row]))
        groups = [good[at] for at in texts.batches([len(found[row]) for row in good], given.batch)]
        for number, group in enumerate(groups):
            yield RowPart(
                rows,
                bad is None and number == len(groups) - 1,
                np.array(group, int),
                texts.values([found[row] for row in group]) if group else {},
                {} if number or bad is not None else dict(errors),
                None,
                place,
            )
        if bad is not None:
            raise at_place(errors[bad], place(bad)) from None

    def _parts(self, rows: pa.RecordBatch, begin: int, part: pa.RecordBatch) -> Iterator[RowPart]:
        given, before = self._given, self._done

        def place(number: int) -> str:
            return self._place(rows, number, before)

        groups, errors = self._read(part)
        bad = min(errors) if errors and given.invalid == "raise" else None
        if bad is not None:  # the rows before it may be enough for a `limit`
            groups, _ = self._read(part.slice(0, bad))
        for number, group in enumerate(groups):
            yield RowPart(
                rows,
                bad is None and begin + given.batch >= rows.num_rows and number == len(groups) - 1,
                begin + group.at,
                group.values,
                {}
                if number or bad is not None
                else {begin + at: error for at, error in errors.items()},
                group.frames,
                place,
            )
        if bad is not None:
            raise at_place(errors[bad], place(begin + bad)) from None

    def _read(self, part: pa.RecordBatch) -> tuple[list[_Group], dict[int, SparkNetError]]:
        """The rows that can be read, at least one group of them, and the errors of the others."""
        try:
            return [self._group(np.arange(part.num_rows), part)], {}
        except BAD:
            pass
        groups: dict[Any, list[_Group]] = {}
        errors: dict[int, SparkNetError] = {}
        for number in range(part.num_rows):
            try:
                one = self._group(np.array([number]), part.slice(number, 1))
            except BAD as error:
                errors[number] = error
                continue
            shapes = tuple(values.shape for values in one.values.values())
            groups.setdefault(shapes, []).append(one)
        together = [_Group.joined(found) for found in groups.values()]
        return together or [_Group(np.arange(0), {}, None)], errors

    def _group(self, at: Array, part: pa.RecordBatch) -> _Group:
        given = self._given
        values = arrays(part, given.mapping, given.shapes)
        frames = None
        if given.pictures is not None and len(at):
            frames = given.pictures.frames(part.column(plain(given.pictures.column)))
        return _Group(at, values, frames)

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
        row = f"row {before + number}"
        return row if self._partition is None else f"partition {self._partition}, {row}"


PATH = "path"
"""The column of Spark's file sources that names a row's file."""
