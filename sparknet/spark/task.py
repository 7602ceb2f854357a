"""The task of training, which each worker of a barrier stage runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sparknet.native import set_threads
from sparknet.net.backend import backend_called
from sparknet.spark.columns import Wanted
from sparknet.spark.ingest import ingest
from sparknet.spark.place_of_task import device_of, task_host
from sparknet.spark.scratch import scratch
from sparknet.training.line import Line
from sparknet.training.run_spec import RunSpec
from sparknet.training.seat import Seat
from sparknet.training.worker import reporting, take_part

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "worker int"


@dataclass(frozen=True)
class Columns:
    """The columns of the net's inputs."""

    mapping: dict[str, str]
    """Blob → column."""
    shapes: dict[str, Wanted]
    """What each blob takes of a record."""
    drops: bool = False
    """Whether rows that cannot be read are left out."""


def train(
    batches: Iterable[pa.RecordBatch], spec: RunSpec, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Train on a partition together with the other tasks; yields a row at the end.

    All files, ports and processes of the task end with it, however it ends.
    """
    import pyarrow as pa
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    rank, size = context.partitionId(), len(context.getTaskInfos())
    set_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    def work(line: Line) -> None:
        with scratch(spec.link.run) as folder:
            embedded = backend_called(str(spec.settings.backend)).is_embedded
            asks = not embedded or spec.settings.device == "cuda"
            device = device_of(context.resources()) if asks else None
            seat = Seat(rank, size, task_host(), folder, device)
            path = folder / "records"
            read = partial(ingest, batches, path, columns.mapping, columns.shapes, columns.drops)
            take_part(spec, seat, line, read)

    reporting(spec.link, rank, work)
    yield pa.RecordBatch.from_pydict({"worker": pa.array([rank], pa.int32())})
