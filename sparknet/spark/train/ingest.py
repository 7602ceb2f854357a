"""Writes a partition's Arrow batches to a block file in the executor's local directory.

Each row has a number from the driver, which fixes the order of the records however the shuffle's
blocks arrive: a stage that is run again trains on the same records in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.atomic_files import atomic_file
from sparknet.errors import SparkError, SparkNetError
from sparknet.loaders.blocks import Blocks, write_blocks
from sparknet.loaders.records import ArrayRecords, Batch, Column, Records, Subset, column_of
from sparknet.net.record_checks import OUTLIER
from sparknet.net.scratch import PRIVATE_FILE
from sparknet.predict.input_columns import InputSpec, arrays
from sparknet.predict.prediction import BAD, at_place
from sparknet.training.checkpoints.runs import check_sum
from sparknet.training.workers.records import WorkerRecords

if TYPE_CHECKING:
    import pyarrow as pa

ROW = "__sparknet_row"
"""The column of row numbers."""
HELD = "__sparknet_held"
"""The column that is true for records of the validation set."""
NAMED = "__sparknet_path"
"""The column of the paths that name rows, where the data has one."""
_FIRST = 64
"""The rows of a partition that say how large the values usually are."""


def write(
    batches: Iterable[pa.RecordBatch],
    path: Path,
    mapping: dict[str, str],
    shapes: Mapping[str, InputSpec],
    drops: bool = False,
) -> None:
    """Write what `opened` reads: first the records, in pieces as they come, if there are any; then
    what is known of them.

    ``mapping`` names the column of each blob, ``shapes`` says what it takes of one record.  The
    first row that cannot be read is an error, unless it ``drops`` and counts such rows.
    """
    reading = _Reading(mapping, shapes, drops)
    pieces = reading.pieces(batches)
    begin = next(pieces, None)
    if begin is not None:
        write_blocks(path, _again(begin, pieces), mode=PRIVATE_FILE)
    with atomic_file(about(path), PRIVATE_FILE) as draft, draft.open("wb") as file:
        rows = np.concatenate([np.zeros(0, np.int64), *reading.rows])
        is_held = np.concatenate([np.zeros(0, bool), *reading.held])
        facts = [sum(reading.checks), reading.dropped, reading.reason, reading.outlier]
        np.savez(file, rows=rows, held=is_held, facts=np.array(json.dumps(facts)))


def about(path: Path) -> Path:
    """Return the file that says what is known of a file of records."""
    return path.with_name(f"{path.name}.npz")


def open_records(path: Path, shapes: Mapping[str, InputSpec]) -> WorkerRecords:
    """Return the records that `write` wrote."""
    with np.load(about(path)) as arrays:
        rows, is_held, facts = arrays["rows"], arrays["held"], json.loads(arrays["facts"].item())
    check_sum, dropped, reason, outlier = facts
    if not len(rows):
        nothing = ArrayRecords(
            **{
                blob: np.zeros((0, *(size or 0 for size in want.shape)), np.uint8)
                for blob, want in shapes.items()
            }
        )
        return WorkerRecords(nothing, nothing, dropped=dropped, reason=reason)
    blocks, order = Blocks(path), np.argsort(rows, kind="stable")
    aside = is_held[order]
    training, validation = _records(blocks, order[~aside]), _records(blocks, order[aside])
    return WorkerRecords(
        training, validation, check_sum, dropped=dropped, reason=reason, outlier=outlier
    )


class _Reading:
    """Arrow batches as arrays that all have the types and shapes of the first."""

    def __init__(
        self, mapping: dict[str, str], shapes: Mapping[str, InputSpec], drops: bool = False
    ) -> None:
        self._mapping, self._shapes, self._drops = mapping, shapes, drops
        self._kinds: dict[str, Column] = {}
        self.rows: list[Any] = []
        """The numbers of the rows that were read."""
        self.held: list[Any] = []
        self.checks: list[int] = []
        self.dropped = 0
        self.reason: str | None = None
        """What is wrong with the first row that was dropped."""
        self.outlier: str | None = None
        """A sentence about the first value that is far beyond those of the first rows."""
        self._largest: dict[str, float] = {}
        """The largest value of each blob's first rows."""

    def pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Batch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows, values = self._read(batch)
            if not len(rows):
                continue
            # Copies: views would keep all columns of the batch in memory.
            self.rows.append(batch.column(ROW).to_numpy()[rows])
            self.held.append(batch.column(HELD).to_numpy(zero_copy_only=False)[rows])
            self._look_for_outlier(batch, rows, values)
            training = ~self.held[-1]
            self.checks.append(check_sum({name: one[training] for name, one in values.items()}))
            yield values

    def _read(self, batch: pa.RecordBatch) -> tuple[Any, Batch]:
        """Return the numbers of the rows that can be read, and these."""
        try:
            values = arrays(batch, self._mapping, self._shapes)
        except BAD as error:
            return self._read_singly(batch, error)
        self._check_same(batch, 0, values)
        return np.arange(batch.num_rows), values

    def _read_singly(self, batch: pa.RecordBatch, whole: SparkNetError) -> tuple[Any, Batch]:
        rows_by_number: dict[int, Batch] = {}
        for number in range(batch.num_rows):
            try:
                rows_by_number[number] = arrays(batch.slice(number, 1), self._mapping, self._shapes)
            except BAD as error:
                error_at_place = at_place(error, _place(batch, number))
                if not self._drops:
                    raise error_at_place from None
                self.dropped += 1
                self.reason = self.reason or str(error_at_place)
                continue
            self._check_same(batch, number, rows_by_number[number])
        if len(rows_by_number) == batch.num_rows:
            raise at_place(whole, f"{_place(batch, 0)} and those after it") from None
        return np.array([*rows_by_number], np.int64), _joined([*rows_by_number.values()])

    def _look_for_outlier(self, batch: pa.RecordBatch, numbers: Any, values: Batch) -> None:
        for blob, rows in values.items():
            if rows.dtype.kind != "f" or not rows.size or self.outlier:
                continue
            sizes = np.abs(rows.reshape(len(rows), -1)).max(1)
            usual = self._largest.setdefault(blob, float(sizes[:_FIRST].max()))
            row = int(sizes.argmax())
            if sizes[row] > OUTLIER * max(usual, 1):
                self.outlier = (
                    f"column '{self._mapping[blob]}' holds {sizes[row]:g} in "
                    f"{_place(batch, int(numbers[row]))}, and the first records reach {usual:.4g}: "
                    "mend or leave out such records"
                )

    def _check_same(self, batch: pa.RecordBatch, number: int, values: Batch) -> None:
        """SparkError for rows that fit the net, but not the rows before them."""
        for blob, rows in values.items():
            kind = column_of(rows)
            before = self._kinds.setdefault(blob, kind)
            if kind == before:
                continue
            if kind.shape != before.shape:
                reason = f"records of {_size(before.shape)} and of {_size(kind.shape)}: give resize"
            else:
                reason = f"values of {before.dtype} and of {kind.dtype}: make them of one type"
            error = SparkError(f"column '{self._mapping[blob]}' has {reason}")
            raise at_place(error, _place(batch, number))


def _joined(rows: Sequence[Batch]) -> Batch:
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]} if rows else {}


def _size(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "a number"


def _place(batch: pa.RecordBatch, row: int) -> str:
    """Return what names a row in the user's data: its path, or its partition and number there.

    Spark's row numbers contain the partition.
    """
    kind = "validation" if batch.column(HELD)[row].as_py() else "training"
    if NAMED in batch.schema.names and (path := batch.column(NAMED)[row].as_py()):
        return f"{path} of the {kind} data"
    partition, number = divmod(batch.column(ROW)[row].as_py(), 1 << 33)
    return f"partition {partition}, row {number} of the {kind} data"


def _again(begin: Batch, rest: Iterator[Batch]) -> Iterator[Batch]:
    yield begin
    yield from rest


def _records(blocks: Blocks, order: Any) -> Records:
    if len(order) == len(blocks) and (np.diff(order) == 1).all():
        return blocks
    return Subset(blocks, order)
