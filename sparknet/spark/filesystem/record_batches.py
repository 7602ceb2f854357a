"""RecordBatches: the records of a data set as rows of Spark, in batches of Arrow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.loaders.records import Array, Column, Records, class_names
from sparknet.predict.prediction import in_one_line
from sparknet.spark.predict.table import CLASSES, SHAPE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType

BATCH_BYTES = 16 << 20
"""Bytes of records in one Arrow batch."""


@dataclass(frozen=True)
class RecordBatches:
    """Rows of records: some of their columns, or all of them."""

    records: Records
    names: Sequence[str] | None = None

    def schema(self) -> StructType:
        """Return the columns as Spark knows them.

        Single numbers become long or double; arrays become binary: uint8 arrays as their bytes,
        others as float32, with their shape in the column's metadata.
        """
        from pyspark.sql.types import StructType

        classes = class_names(self.records)
        return StructType([_field(*column, classes) for column in self.columns.items()])

    @property
    def columns(self) -> dict[str, Column]:
        columns = dict(self.records.columns)
        return columns if self.names is None else {name: columns[name] for name in self.names}

    def read(self, rows: Array) -> Iterator[pa.RecordBatch]:
        """Yield the records with these numbers."""
        import pyarrow as pa

        columns = self.columns
        size = sum(column.size for column in columns.values())
        step = max(1, BATCH_BYTES // max(size, 1))
        with in_one_line():
            for begin in range(0, len(rows), step):
                values = self._take(rows[begin : begin + step])
                yield pa.RecordBatch.from_pydict(
                    {name: _column(values[name], column) for name, column in columns.items()}
                )

    def read_range(self, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        return self.read(np.arange(begin, end))

    def read_numbers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the records whose numbers stand in the first column, for mapInArrow."""
        for batch in batches:
            yield from self.read(batch.column(0).to_numpy())

    def _take(self, rows: Array) -> dict[str, Array]:
        """Read records; of images the labels alone, where no other column is wanted."""
        take_labels = getattr(self.records, "take_labels", None)
        if take_labels is not None and list(self.columns) == ["label"]:
            return {"label": take_labels(rows)}
        return self.records.take(rows)


def _field(name: str, column: Column, classes: Sequence[str]) -> StructField:
    from pyspark.sql.types import BinaryType, DoubleType, LongType, StructField

    if column.shape:
        return StructField(name, BinaryType(), metadata={SHAPE: list(column.shape)})
    metadata = {CLASSES: list(classes)} if name == "label" and classes else None
    kind = DoubleType() if column.dtype.kind == "f" else LongType()
    return StructField(name, kind, metadata=metadata)


def _column(values: Array, column: Column) -> Any:
    import pyarrow as pa

    if not column.shape:
        return pa.array(values.astype(np.float64 if column.dtype.kind == "f" else np.int64))
    array = values if values.dtype == np.uint8 else values.astype(np.float32)
    flat = np.ascontiguousarray(array).reshape(len(array), math.prod(column.shape)).view(np.uint8)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(flat.shape[1]), len(flat), [None, pa.py_buffer(flat.ravel())]
    )
    return fixed.cast(pa.binary())
