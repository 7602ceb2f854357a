"""What Spark's tasks read: ranges of records, and the data sets that arrive in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from sparknet.errors import FileError
from sparknet.predict.prediction import in_one_line
from sparknet.spark.filesystem.record_batches import RecordBatches
from sparknet.spark.predict.table import SHAPE

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION_BYTES = 128 << 20
"""Bytes of records in a partition, as Spark divides files."""


_AVAILABLE_NOW: tuple[type, ...] = ()
with suppress(ImportError):
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow  # since PySpark 4.2

    _AVAILABLE_NOW = (SupportsTriggerAvailableNow,)


class PartReader(DataSourceReader):  # type: ignore[misc]  # mypy does not read PySpark
    """Parts of data sets, each read by a task."""

    def __init__(self, parts: Sequence[tuple[Any, ...]], read_part: Callable[..., Any]) -> None:
        """``read_part`` takes a part and returns batches of Arrow."""
        self._parts, self._read_part = parts, read_part

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return iter(self._read_part(*partition.value))


def ranges(batches: RecordBatches, parts: int | None) -> list[tuple[int, int]]:
    """Return the ends of ranges: one for each 128 MiB, and for each processor of the driver."""
    count = len(batches.records)
    size = count * sum(column.size for column in batches.columns.values())
    parts = parts or max(os.cpu_count() or 1, -(-size // PARTITION_BYTES))
    return list(pairwise(np.linspace(0, count, 1 + max(1, min(parts, count))).astype(int).tolist()))


class FolderReader(DataSourceStreamReader, *_AVAILABLE_NOW):  # type: ignore[misc]
    """A stream of the data sets in a folder: an offset lists those that were there.

    The names that an offset has and the one before has not are a batch, so a batch that is
    computed again reads the same files.
    """

    def __init__(self, source: Any, schema: Any) -> None:
        """``source`` is the `CaffeSource` whose path is the folder."""
        self.source, self.schema = source, schema
        self._until: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        return {"files": {}}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the bound of a batch, the oldest files first; PySpark has bounds since 4.2."""
        from pyspark.sql.streaming.datasource import ReadMaxFiles

        count = self.source.number("maxFilesPerTrigger")
        return super().getDefaultReadLimit() if count is None else ReadMaxFiles(count)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._times()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return the data sets up to a bound; before PySpark 4.2, which gives none, all."""
        times = self._times() if self._until is None else self._until
        done = {} if start is None else start["files"]
        arrived = sorted(times.keys() - done.keys(), key=lambda name: (times[name], name))
        names = {*arrived[: getattr(limit, "max_files", None)], *(times.keys() & done.keys())}
        return {"files": {name: times[name] for name in sorted(names)}}

    def _times(self) -> dict[str, int]:
        """Return when each data set in the folder was written."""
        with in_one_line():
            self.source.check_stream()
            return {str(path): path.stat().st_mtime_ns for path in self.source.list_data_sets()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        arrived = sorted(end["files"].keys() - start["files"].keys())
        with in_one_line():
            return [InputPartition(part) for part in self.source.split(arrived)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return iter(self.source.read_part(partition.value, self.schema))


def check_shapes(schema: Any, batches: RecordBatches, name: str) -> None:
    """Raise FileError if records of a stream have another shape than the schema says."""
    for field in schema.fields:
        shape = (field.metadata or {}).get(SHAPE)
        own = batches.columns[field.name].shape
        if shape is not None and tuple(shape) != own:
            sizes = [" x ".join(map(str, sides)) for sides in (own, shape)]
            raise FileError(
                name, f"has '{field.name}' of {sizes[0]}, and the stream's is {sizes[1]}"
            )
