"""predict: the task of prediction, which runs Arrow batches through a net."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.dist.portable import Portable
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.native import set_threads
from sparknet.net import Net
from sparknet.net.scratch import scratch_folder
from sparknet.spark.columns import Wanted, arrays
from sparknet.spark.outputs import Output
from sparknet.spark.places import in_one_line, placed
from sparknet.spark.worker_cache import kept

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Prediction:
    """The settings of a task, without the weights: executors fetch those as a file, once."""

    weights: str
    net: Portable
    mapping: dict[str, str]
    shapes: dict[str, Wanted]
    outputs: Sequence[Output]
    best: str | None
    batch: int
    preprocessing: Preprocessing | None = None
    """What was asked for images."""

    def make_net(self) -> Net:
        from pyspark import SparkFiles

        set_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        with scratch_folder() as folder:
            net = Net(
                self.net.unpacked(Path(folder)),
                SparkFiles.get(self.weights),
                preprocessing=self.preprocessing,
            )
            _ = net.tested  # reads the folder's files
        return net


def predict(batches: Iterable[pa.RecordBatch], prediction: Prediction) -> Iterator[pa.RecordBatch]:
    """The rows of a partition with their predictions."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    work = partial(_predicted, given=prediction)
    done = 0
    with in_one_line():
        for batch in batches:
            for begin in range(0, batch.num_rows, prediction.batch):
                rows = batch.slice(begin, prediction.batch)
                yield placed(work, rows, partial(_place, context.partitionId(), done))
                done += rows.num_rows


def _place(partition: int, before: int, row: int) -> str:
    return f"partition {partition}, row {before + row}"


def _predicted(rows: pa.RecordBatch, given: Prediction) -> pa.RecordBatch:
    import pyarrow as pa

    net = kept((given.weights, given.net.text, given.preprocessing), given.make_net)
    made = net.forward(
        arrays(rows, given.mapping, given.shapes), [output.blob for output in given.outputs]
    )
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    values: Array | None = None
    for output in given.outputs:
        found = output.rows(made[output.blob], rows.num_rows)
        columns[output.column] = output.values(found, rows.num_rows)
        values = found if values is None else values
    if given.best is not None and values is not None:
        columns[given.best] = pa.array(values.argmax(1).astype(np.float64))
    return pa.RecordBatch.from_pydict(columns)
