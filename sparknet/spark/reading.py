"""read_records: a data set of files as a DataFrame; each executor reads a range of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.loaders import Records, open_records
from sparknet.loaders.records import Array, Column
from sparknet.spark.places import in_one_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_AT_ONCE = 16 << 20
"""Bytes of records in one Arrow batch."""


def read_records(session: SparkSession, data: Any, parts: int | None = None) -> DataFrame:
    """The records of ``data`` (Records, or the path of a data set) as a DataFrame.

    Each of ``parts`` partitions (the cluster's default unless given) opens the files itself, so
    every executor must reach them by the same path.  Single numbers become long or double;
    arrays become binary: uint8 arrays as their bytes, others as float32.
    """
    records: Records = data if hasattr(data, "take") else open_records(data)
    numbers = session.range(0, len(records), 1, parts)
    schema = ", ".join(f"`{name}` {_type(column)}" for name, column in records.columns.items())
    return numbers.mapInArrow(partial(_read, records=records), schema)


def _type(column: Column) -> str:
    if column.shape:
        return "binary"
    return "double" if column.dtype.kind == "f" else "long"


def _read(batches: Iterable[pa.RecordBatch], records: Records) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    size = sum(column.size for column in records.columns.values())
    rows = max(1, _AT_ONCE // max(size, 1))
    with in_one_line():
        for batch in batches:
            numbers = batch.column(0).to_numpy()
            for begin in range(0, len(numbers), rows):
                taken = records.take(numbers[begin : begin + rows])
                kinds = records.columns.items()
                yield pa.RecordBatch.from_pydict(
                    {name: _column(taken[name], kind) for name, kind in kinds}
                )


def _column(values: Array, column: Column) -> pa.Array:
    import pyarrow as pa

    if not column.shape:
        return pa.array(values.astype(np.float64 if column.dtype.kind == "f" else np.int64))
    kept = values if values.dtype == np.uint8 else values.astype(np.float32)
    flat = np.ascontiguousarray(kept).reshape(len(kept), -1).view(np.uint8)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(flat.shape[1]), len(flat), [None, pa.py_buffer(flat.ravel())]
    )
    return fixed.cast(pa.binary())


def read_parquet(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """A DataFrame of Parquet files or folders, wherever Spark can read."""
    return _asked(lambda: session.read.parquet(*paths))


def query(session: SparkSession, text: str) -> DataFrame:
    """The DataFrame of a SQL query."""
    return _asked(lambda: session.sql(text))


def _asked(ask: Callable[[], DataFrame]) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        found = ask()
        _ = found.columns  # Spark Connect checks it only here
    except PySparkException as error:
        raise SparkError(str(error).strip().partition("\n")[0]) from error
    return found
