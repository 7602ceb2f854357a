"""The tasks of training: a worker of a barrier stage, or of a job of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.comm.rpc import Line
from sparknet.devices import uses_task_gpu
from sparknet.errors import CommError
from sparknet.native import set_threads
from sparknet.net.backend import backend_called
from sparknet.predict.input_columns import InputSpec
from sparknet.spark.cluster.gpus import device_of, task_host
from sparknet.spark.filesystem.scratch import once, scratch
from sparknet.spark.train.ingest import about, open_records, write
from sparknet.training.workers.records import WorkerPlace, WorkerRecords
from sparknet.training.workers.run_spec import RunSpec
from sparknet.training.workers.worker import reporting, take_part

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "worker int"


@dataclass(frozen=True)
class Columns:
    """The columns of the net's inputs."""

    mapping: dict[str, str]
    """Blob → column."""
    shapes: dict[str, InputSpec]
    """What each blob takes of a record."""
    drops: bool = False
    """Whether rows that cannot be read are left out."""


def train(
    batches: Iterable[pa.RecordBatch], spec: RunSpec, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Train on a partition together with the other tasks; yields a row at the end."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    rank, size = context.partitionId(), len(context.getTaskInfos())
    yield from _trained(batches, spec, columns, rank, size, host=task_host())


def run_worker(
    batches: Iterable[pa.RecordBatch], spec: RunSpec, columns: Columns, rank: int, size: int
) -> Iterator[pa.RecordBatch]:
    """Train as one of ``size`` jobs, each of which reads all rows; yields a row at the end."""
    yield from _trained(batches, spec, columns, rank, size)


def sent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the executor's rows.

    Where it stops in the middle, it ends the task, and Spark says why.
    """
    import pyarrow as pa

    rows = iter(batches)
    while True:
        try:
            batch = next(rows, None)
        except (pa.ArrowException, OSError, EOFError) as error:
            raise CommError(f"the executor sends no more rows: {error}") from error
        if batch is None:
            return
        yield batch


def _records(
    batches: Iterable[pa.RecordBatch], path: Path, columns: Columns, is_whole: bool
) -> WorkerRecords:
    """Return the task's records; if all workers have the same, one of each executor reads them."""

    def read() -> None:
        write(sent(batches), path, columns.mapping, columns.shapes, columns.drops)

    if is_whole:
        once(path.parent, (path.name, about(path).name), read)
    else:
        read()
    return replace(open_records(path, columns.shapes), is_whole=is_whole)


def _trained(
    batches: Iterable[pa.RecordBatch],
    spec: RunSpec,
    columns: Columns,
    rank: int,
    size: int,
    host: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Train in a task; its files, ports and processes end with it, however it ends.

    A job of its own does not know its ``host``, which is then that of its line to the driver.
    """
    import pyarrow as pa
    from pyspark import TaskContext

    resources = TaskContext.get().resources()
    set_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    def work(line: Line) -> None:
        departure = threading.Event()
        with scratch(spec.link.run, departure.set if spec.goes_on else None) as folder:
            embedded = backend_called(str(spec.settings.backend)).is_embedded
            asks = not embedded or uses_task_gpu(spec.settings.device)
            device = device_of(resources) if asks else None
            place = WorkerPlace(rank, size, host or line.host, folder, device)

            def read() -> WorkerRecords:
                return _records(batches, folder / "records", columns, is_whole=host is None)

            take_part(spec, place, line, read, departure.is_set)

    reporting(spec.link, rank, work)
    yield pa.RecordBatch.from_pydict({"worker": pa.array([rank], pa.int32())})
