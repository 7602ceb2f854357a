"""Prediction: runs Arrow batches through a model, with an error for each bad row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import DataError, FileError, SparkError, SparkNetError, bare
from sparknet.loaders.stopwatch import timed
from sparknet.predict.detections import BoxFrames
from sparknet.predict.input_columns import InputSpec, arrays, plain
from sparknet.predict.output_columns import Array, At, Collected, Output
from sparknet.predict.texts import Texts

if TYPE_CHECKING:
    import pyarrow as pa

    from sparknet.predict.texts import Texts

Invalid = Literal["raise", "null", "drop"]


@dataclass(frozen=True)
class Prediction:
    """What a model reads of rows, and the columns that it makes of them."""

    mapping: dict[str, str]
    shapes: dict[str, InputSpec]
    outputs: Sequence[Output]
    batch: int
    """Records that go through the net at a time."""
    most: int
    """The largest number of rows in an Arrow batch of results."""
    invalid: Invalid = "raise"
    reason: str | None = None
    """The column for what is wrong with a row."""
    key: str | None = None
    """The column whose value names a row in messages."""
    pictures: BoxFrames | None = None
    """The pictures in which boxes are found, where those are told in pixels."""
    texts: Texts | None = None
    """What makes the inputs of a column of texts."""

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        more = [] if self.key is None else [self.key]
        return list(dict.fromkeys([*self.mapping.values(), *more]))


Forward = Callable[[dict[str, Array], Sequence[str]], dict[str, Array]]
"""Returns outputs of a batch, as `Model.forward` does."""


@dataclass(frozen=True)
class PredictedRows:
    """Rows as they came, and the columns that were made of them."""

    rows: pa.RecordBatch
    columns: list[pa.Array]
    valid: Array


def pieces(
    parts: Iterable[RowPart], given: Prediction, forward: Forward
) -> Iterator[PredictedRows]:
    """Yield the rows of each Arrow batch of results with their predictions.

    Rows before a bad one come first, so that a ``limit`` that they satisfy meets no error.
    """
    piece = None
    try:
        for part in parts:
            piece = piece or _Piece(given, forward, part.rows)
            piece.add(part)
            if part.is_last:
                done, piece = piece.done(), None
                yield done
    except SparkNetError:
        if piece is not None and (done := piece.done()).rows.num_rows:
            yield done
        raise


class _Piece:
    """The columns of an Arrow batch of results as they are filled."""

    def __init__(self, given: Prediction, forward: Forward, rows: pa.RecordBatch) -> None:
        self._given, self._forward, self._rows = given, forward, rows
        self._blobs = list(dict.fromkeys(output.blob for output in given.outputs))
        self._columns = [output.collect(rows.num_rows) for output in given.outputs]
        self._errors: dict[int, str] = {}
        self._is_done = np.zeros(rows.num_rows, bool)

    def add(self, part: RowPart) -> None:
        for number, error in part.errors.items():
            self._errors[number] = str(error)
        if not len(part.at):
            return
        try:
            self._run(part)
        except SparkNetError as error:
            if len(part.at) == 1:
                self._refuse(part, error)
                return
            for one in part.singly():
                self.add(one)

    def _run(self, part: RowPart) -> None:
        blobs = self._forward(part.values, self._blobs)
        with timed("results"):
            self._put(part, blobs)

    def _put(self, part: RowPart, blobs: dict[str, Array]) -> None:
        at: Any = part.at
        if len(at) == at[-1] - at[0] + 1 and (at[1:] > at[:-1]).all():
            at = slice(int(at[0]), int(at[-1]) + 1)
        puts: list[Callable[[], None]] = []
        for output, column in zip(self._given.outputs, self._columns, strict=True):
            check_made(output, blobs[output.blob], len(part.at))
            puts.append(partial(_put, output, column, at, blobs[output.blob], part))
        for put in puts:
            put()
        self._is_done[at] = True

    def _refuse(self, part: RowPart, error: SparkNetError) -> None:
        """Refuse a row that the net cannot compute with."""
        if self._given.invalid == "raise":
            raise part.with_place(error)
        self._errors[int(part.at[0])] = str(error)

    def done(self) -> PredictedRows:
        """Return the rows up to the first one that is neither predicted nor refused."""
        import pyarrow as pa

        valid = self._is_done
        with timed("results"):
            columns = [column.arrow(valid) for column in self._columns]
        if self._given.reason is not None:
            reasons = [self._errors.get(number) for number in range(self._rows.num_rows)]
            columns.append(pa.array(reasons, pa.string()))
        is_known = valid.copy()
        is_known[list(self._errors)] = True
        count = len(valid) if is_known.all() else int(is_known.argmin())
        return PredictedRows(
            self._rows.slice(0, count), [one.slice(0, count) for one in columns], valid[:count]
        )


def check_made(output: Output, made: Array, count: int) -> None:
    """SparkError if a blob has no row for each record, or a value that is not finite."""
    if not np.isfinite(made).all():
        odd = made[~np.isfinite(made)][0]
        raise SparkError(
            f"blob '{output.blob}' became {odd:g}, though its record has finite values"
        )
    if not output.is_list and (made.ndim <= output.axis or made.shape[output.axis] != count):
        raise SparkError(f"blob '{output.blob}' became {made.shape} for {count} records")


def _put(output: Output, column: Collected, at: At, made: Array, part: RowPart) -> None:
    column.put(at, output.rows(made, len(part.at)), part.frames)


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
        """Yield the rows one by one."""
        for number, at in enumerate(self.at):
            one = slice(number, number + 1)
            values = {name: values[one] for name, values in self.values.items()}
            frames = None if self.frames is None else self.frames[one]
            yield RowPart(self.rows, False, np.array([at]), values, {}, frames, self.places)

    def with_place(self, error: SparkNetError) -> SparkNetError:
        """Return the error with the place of the first row."""
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
        plan, length = self._given, self._given.batch
        for batch in batches:
            if not batch.num_rows:
                yield from self._piece(batch)
            at = 0
            while at < batch.num_rows:
                yield from self._piece(batch.slice(at, length))
                at += length
                length = min(2 * length, max(plan.most, plan.batch))

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
        plan, before = self._given, self._done

        def place(number: int) -> str:
            return self._place(rows, number, before)

        (column,) = plan.mapping.values()
        with timed("columns"), timed("tokens"):
            token_lists, errors = texts.read(rows.column(plain(column)), column)
        bad = min(errors) if errors and plan.invalid == "raise" else None
        good = sorted(
            set(range(len(token_lists))[:bad]) - errors.keys(),
            key=lambda row: len(token_lists[row]),
        )
        groups = [
            good[at] for at in texts.batches([len(token_lists[row]) for row in good], plan.batch)
        ]
        for number, group in enumerate(groups):
            yield RowPart(
                rows,
                bad is None and number == len(groups) - 1,
                np.array(group, int),
                texts.values([token_lists[row] for row in group]) if group else {},
                {} if number or bad is not None else dict(errors),
                None,
                place,
            )
        if bad is not None:
            raise at_place(errors[bad], place(bad)) from None

    def _parts(self, rows: pa.RecordBatch, begin: int, part: pa.RecordBatch) -> Iterator[RowPart]:
        plan, before = self._given, self._done

        def place(number: int) -> str:
            return self._place(rows, number, before)

        groups, errors = self._read(part)
        bad = min(errors) if errors and plan.invalid == "raise" else None
        if bad is not None:  # the rows before it may be enough for a `limit`
            groups, _ = self._read(part.slice(0, bad))
        for number, group in enumerate(groups):
            yield RowPart(
                rows,
                bad is None and begin + plan.batch >= rows.num_rows and number == len(groups) - 1,
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
        """Return the rows that can be read, at least one group of them, and the errors of the
        others.
        """
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
        together = [_Group.joined(parts) for parts in groups.values()]
        return together or [_Group(np.arange(0), {}, None)], errors

    def _group(self, at: Array, part: pa.RecordBatch) -> _Group:
        plan = self._given
        with timed("columns"):
            values = arrays(part, plan.mapping, plan.shapes)
        frames = None
        if plan.pictures is not None and len(at):
            frames = plan.pictures.frames(part.column(plain(plan.pictures.column)))
        return _Group(at, values, frames)

    def _place(self, rows: pa.RecordBatch, number: int, before: int) -> str:
        """Return what names a row: its key or path, an image's origin, or its number in the
        partition.
        """
        import pyarrow as pa

        plan = self._given
        if plan.key is not None:
            value = rows.column(plain(plan.key))[number].as_py()
            if value is not None:
                return str(value) if plan.key == PATH else f"{plan.key} {value}"
        for name in plan.mapping.values():
            column = rows.column(plain(name))
            if pa.types.is_struct(column.type) and column.type.get_field_index("origin") >= 0:
                value = column.field("origin")[number].as_py() if column[number].is_valid else None
                if value:
                    return str(value)
        row = f"row {before + number}"
        return row if self._partition is None else f"partition {self._partition}, {row}"


PATH = "path"
"""The column of Spark's file sources that names a row's file."""


BAD = (DataError, FileError, SparkError)
"""Errors that a bad row can cause."""
_HIDE = "SPARK_HIDE_TRACEBACK"
"""PySpark's worker reads this variable when it reports the error that it ends with."""


def at_place(error: SparkNetError, place: str) -> SparkNetError:
    """Return the error with a place behind its sentence."""
    error_at_place = bare(type(error), f"{error} ({place})")
    vars(error_at_place).update(vars(error))
    return error_at_place


@contextmanager
def in_one_line() -> Iterator[None]:
    """Let an error of sparknet leave the worker without its traceback.

    The process ends with that error, so that no other traceback is hidden.
    """
    try:
        yield
    except SparkNetError:
        os.environ[_HIDE] = "1"
        raise
