"""What Spark's tasks read: ranges of records, and the data sets that arrive in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
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


class BatchReader(DataSourceReader):  # type: ignore[misc]  # mypy does not read PySpark
    """Ranges of the records of a data set."""

    def __init__(self, batches: RecordBatches, parts: int | None) -> None:
        self.batches, self.parts = batches, parts

    def partitions(self) -> Sequence[InputPartition]:
        """Return ranges: one for each 128 MiB, and for each processor of the driver."""
        count = len(self.batches.records)
        size = count * sum(column.size for column in self.batches.columns.values())
        parts = self.parts or max(os.cpu_count() or 1, -(-size // PARTITION_BYTES))
        ends = np.linspace(0, count, 1 + max(1, min(parts, count))).astype(int).tolist()
        return [InputPartition(pair) for pair in pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.batches.read(np.arange(*partition.value))


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
        parts = len(arrived)
        if self.source.kind == "images":
            parts = self.source.number("partitions") or os.cpu_count() or 1
        return [
            InputPartition(names)
            for names in (arrived[part::parts] for part in range(parts))
            if names
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        paths = [Path(name) for name in partition.value]
        with in_one_line():
            batches = RecordBatches(self.source.open(paths, self.schema.names), self.schema.names)
            self._check(batches, partition.value[0])
        return batches.read(np.arange(len(batches.records)))

    def _check(self, batches: RecordBatches, name: str) -> None:
        """Raise FileError if records have another shape than the schema says."""
        for field in self.schema.fields:
            shape = (field.metadata or {}).get(SHAPE)
            own = batches.columns[field.name].shape
            if shape is not None and tuple(shape) != own:
                sizes = [" x ".join(map(str, sides)) for sides in (own, shape)]
                raise FileError(
                    name, f"has '{field.name}' of {sizes[0]}, and the stream's is {sizes[1]}"
                )
