"""Writes a partition's Arrow batches to a block file in the executor's local directory.

Each row has a number from the driver, which fixes the order of the records however the shuffle's
blocks arrive: a stage that is run again trains on the same records in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.dist.identity import check_sum
from sparknet.dist.worker_main import Part
from sparknet.loaders.blocks import Blocks, write_blocks
from sparknet.loaders.records import ArrayRecords, Batch, Records, Subset
from sparknet.net.scratch import PRIVATE_FILE
from sparknet.spark.columns import Wanted, arrays
from sparknet.spark.places import placed

if TYPE_CHECKING:
    import pyarrow as pa

ROW = "__sparknet_row"
"""The column of row numbers."""
HELD = "__sparknet_held"
"""The column that is true for records of the validation set."""


def ingest(
    batches: Iterable[pa.RecordBatch],
    path: Path,
    mapping: dict[str, str],
    shapes: Mapping[str, Wanted],
) -> Part:
    """Write the rows to a block file, in pieces as they come, and open it.

    ``mapping`` names the column of each blob, ``shapes`` says what it takes of one record.
    """
    rows: list[Any] = []
    held: list[Any] = []
    checks: list[int] = []

    read: Callable[[pa.RecordBatch], Batch] = partial(arrays, mapping=mapping, shapes=shapes)

    def columns() -> Iterator[Batch]:
        for batch in batches:
            if batch.num_rows:
                # A copy: a view would keep all columns of the batch in memory.
                rows.append(batch.column(ROW).to_numpy().copy())
                held.append(batch.column(HELD).to_numpy(zero_copy_only=False))
                found = placed(read, batch, partial(_place, rows[-1], held[-1]))
                kept = ~held[-1]
                checks.append(check_sum({blob: values[kept] for blob, values in found.items()}))
                yield found

    first = columns()
    begin = next(first, None)
    if begin is None:
        nothing = _no_records(shapes)
        return Part(nothing, nothing)
    write_blocks(path, _again(begin, first), mode=PRIVATE_FILE)
    blocks = Blocks(path)
    order = np.argsort(np.concatenate(rows), kind="stable")
    aside = np.concatenate(held)[order]
    training, validation = _chosen(blocks, order[~aside]), _chosen(blocks, order[aside])
    return Part(training, validation, sum(checks))


def _place(numbers: Any, held: Any, row: int) -> str:
    """The place of a row in the user's data; Spark's row numbers contain the partition."""
    partition, number = divmod(int(numbers[row]), 1 << 33)
    kind = "validation" if held[row] else "training"
    return f"partition {partition}, row {number} of the {kind} data"


def _again(begin: Batch, rest: Iterator[Batch]) -> Iterator[Batch]:
    yield begin
    yield from rest


def _chosen(blocks: Blocks, order: Any) -> Records:
    if len(order) == len(blocks) and (np.diff(order) == 1).all():
        return blocks
    return Subset(blocks, order)


def _no_records(shapes: Mapping[str, Wanted]) -> Records:
    return ArrayRecords(
        **{
            blob: np.zeros((0, *(size or 0 for size in want.shape)), np.uint8)
            for blob, want in shapes.items()
        }
    )
