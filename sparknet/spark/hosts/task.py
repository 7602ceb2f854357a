"""The tasks of training: a worker of a barrier stage, or a job that carries several workers."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
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
from sparknet.training.workers.host import Departure, carry, carry_for
from sparknet.training.workers.host_memory import HostMemory
from sparknet.training.workers.records import WorkerPlace, WorkerRecords
from sparknet.training.workers.run_spec import RunSpec
from sparknet.training.workers.worker import take_part

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
    host = task_host()
    with scratch(spec.link.run) as folder:
        place = WorkerPlace(rank, size, host, folder, _device(spec))

        def work(rank: int, line: Line) -> None:
            take_part(spec, place, line, partial(_records, batches, folder, columns, False))

        carry(spec.link, [rank], work)
    yield _row(rank)


def run_host(
    batches: Iterable[pa.RecordBatch], spec: RunSpec, columns: Columns, number: int
) -> Iterator[pa.RecordBatch]:
    """Carry workers in a job of its own, which reads all rows; yields a row at the end."""
    departure, turn, memory = Departure(), threading.Lock(), HostMemory()
    with scratch(spec.link.run, departure.ask) as folder:
        device = _device(spec)

        def read() -> WorkerRecords:
            with turn:  # the first worker reads for all
                return _records(batches, folder, columns, True)

        def work(rank: int, line: Line) -> None:
            own = Path(tempfile.mkdtemp(prefix=f"worker-{rank}-", dir=folder))
            size = spec.settings.workers
            place = WorkerPlace(rank, size, line.host, own, device, number, memory)
            take_part(spec, place, line, read)

        carry_for(spec.link, number, work, departure)
    yield _row(number)


def _device(spec: RunSpec) -> int | None:
    """Return the task's GPU, if the run asks for one; set the threads of its workers."""
    from pyspark import TaskContext

    set_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    embedded = backend_called(str(spec.settings.backend)).is_embedded
    asks = not embedded or uses_task_gpu(spec.settings.device)
    return device_of(TaskContext.get().resources()) if asks else None


def _row(number: int) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"worker": pa.array([number], pa.int32())})


def received_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
    batches: Iterable[pa.RecordBatch], folder: Path, columns: Columns, is_whole: bool
) -> WorkerRecords:
    """Return the task's records; if all workers have the same, one of each executor reads them."""
    path = folder / "records"

    def read() -> None:
        write(received_rows(batches), path, columns.mapping, columns.shapes, columns.drops)

    if not is_whole:
        read()
    elif not about(path).exists():
        once(folder, (path.name, about(path).name), read)
    return replace(open_records(path, columns.shapes), is_whole=is_whole)
