"""Tasks of a prediction: a model that travels to executors, and the functions that Spark calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.devices import device_identity, device_of_worker, uses_task_gpu
from sparknet.errors import SparkError
from sparknet.loaders.batches import ahead
from sparknet.loaders.stopwatch import timed, timed_items
from sparknet.native import NDArray, set_threads
from sparknet.net.backend import CPU
from sparknet.net.model import Array, Model, PortableModel
from sparknet.predict.input_columns import plain
from sparknet.predict.prediction import (
    PredictedRows,
    Prediction,
    RowReader,
    in_one_line,
    pieces,
)
from sparknet.predict.worker_cache import cached
from sparknet.spark.cluster.gpus import Turns, device_of
from sparknet.spark.filesystem.broadcast import SharedWeights, received
from sparknet.spark.predict.profiling import profiled

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SentModel:
    """A model and its weights, which executors usually fetch as a file, once."""

    model: PortableModel
    weights: str
    """The file of the weights, as SparkFiles knows it."""
    content: bytes | None = field(default=None, repr=False)
    """The weights, where tasks get no file."""
    device: str | None = None
    """PyTorch's name of where the model computes."""
    tasks_per_gpu: int | None = None
    """How many tasks may compute there at once."""

    @property
    def key(self) -> Any:
        """What tells the model of this task from others in a Python worker."""
        return self.weights, self.model.key, self._device, self.tasks_per_gpu

    def open(self) -> WorkerModel:
        """Make the model, in a task."""
        set_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        weights = None
        if self.content is None:
            weights = SharedWeights(received(self.weights))
            flat = weights.flat
        else:
            flat = NDArray.view(np.frombuffer(bytearray(self.content), np.float32))
        model, turns = self.model.open(flat, self._device), None
        if model.device is not None and self.tasks_per_gpu is not None:
            turns = Turns(device_identity(model.device), self.tasks_per_gpu)
        return WorkerModel(model, weights, turns)

    @property
    def _device(self) -> str | None:
        """Of "cuda" and "auto" the GPU that Spark gave this task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None or not uses_task_gpu(self.device):
            return self.device
        gpu = device_of(context.resources())
        return device_of_worker(self.device, context.partitionId(), None if gpu == CPU else gpu)


@dataclass(frozen=True)
class ModelTask:
    """What a task of a prediction does, and the model that it does it with."""

    prediction: Prediction
    model: SentModel
    profiles: Any = None
    """The accumulator of tasks' profiles, where they are asked for."""


@dataclass(frozen=True)
class WorkerModel:
    """A model in a Python worker, over weights that all workers share."""

    model: Model
    weights: SharedWeights | None = None
    turns: Turns | None = None

    def forward(self, values: dict[str, Array], blobs: Sequence[str]) -> dict[str, Array]:
        with timed("net", sum(array.nbytes for array in values.values())):
            if self.turns is None:
                tops = self.model.forward(values, blobs)
            else:
                with self.turns.take():
                    tops = self.model.forward(values, blobs)
                    self.model.trim()
        if self.weights is not None:
            self.weights.check()
        return tops


def predicted(batches: Iterable[pa.RecordBatch], task: ModelTask) -> Iterator[PredictedRows]:
    """Yield the rows of a partition with their predictions.

    The first come back after one batch of the net, for `show` and `limit`, then twice as many each
    time, up to the whole Arrow batch.
    """
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    reader = RowReader(task.prediction, context.partitionId() if context is not None else 0)
    with in_one_line(), profiled(task.profiles, context) as rows:
        with timed("model"):
            worker = cached(task.model.key, task.model.open)
        batches = timed_items("input", batches, lambda batch: batch.nbytes)
        parts = timed_items("waiting", ahead(reader.parts(ahead(batches))))
        for piece in pieces(parts, task.prediction, worker.forward):
            rows.append(piece.rows.num_rows)
            with timed("writing", sum(column.nbytes for column in piece.columns)):
                yield piece
        worker.model.trim()


# -- as Spark calls it -----------------------------------------------------------------------


def valid_rows(batches: Iterable[pa.RecordBatch], task: ModelTask) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: the rows that the net can compute with, and their predictions."""
    import pyarrow as pa

    names = [f"sparknet_{number}" for number in range(len(task.prediction.outputs))]
    for piece in predicted(batches, task):
        columns = [*piece.rows.columns, *piece.columns]
        whole = pa.RecordBatch.from_arrays(columns, [*piece.rows.schema.names, *names])
        yield whole if piece.valid.all() else whole.filter(pa.array(piece.valid))


def structs(columns: Iterable[Any], task: ModelTask, names: Sequence[str]) -> Iterator[pa.Array]:
    """For an Arrow function: the columns made as one column of structs, or the only one."""
    import pyarrow as pa

    for piece in predicted((_batch(one, task.prediction) for one in columns), task):
        if not names:
            yield piece.columns[0]
            continue
        yield pa.StructArray.from_arrays(piece.columns, names=list(names))


def frames(columns: Iterable[Any], task: ModelTask, names: Sequence[str]) -> Iterator[Any]:
    """For a pandas function: the same, as data frames or series."""
    import pandas as pd

    for piece in predicted((_batch(one, task.prediction) for one in columns), task):
        series = list(map(_series, piece.columns))
        yield pd.DataFrame(dict(zip(names, series, strict=True))) if names else series[0]


def _series(made: pa.Array) -> Any:
    """Over Arrow's memory; but PySpark 3.5 knows a list that is missing by None alone."""
    import pandas as pd
    import pyarrow as pa

    if made.null_count and pa.types.is_nested(made.type):
        return made.to_pandas()
    return pd.Series(made, dtype=pd.ArrowDtype(made.type))


def _batch(columns: Any, given: Prediction) -> pa.RecordBatch:
    import pyarrow as pa

    given_columns = columns if isinstance(columns, tuple) else (columns,)
    if len(given_columns) != len(given.columns):
        raise SparkError(
            f"the function takes a column for each of the net's inputs {list(given.mapping)}: "
            f"{len(given_columns)} are given"
        )
    arrays = [_array(one) for one in given_columns]
    return pa.RecordBatch.from_arrays(arrays, list(map(plain, given.columns)))


def _array(column: Any) -> pa.Array:
    """Return what Spark hands over, an array of Arrow, a series or a struct's frame of pandas."""
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    if hasattr(column, "columns"):
        fields = [_array(column[name]) for name in column.columns]
        return pa.StructArray.from_arrays(fields, names=list(column.columns))
    # Else a NaN inside a list would be a null.
    return pa.array(column, from_pandas=column.dtype != object)
