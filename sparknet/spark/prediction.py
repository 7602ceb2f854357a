"""predict: the task of prediction, which runs Arrow batches through a net."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import SparkError, SparkNetError
from sparknet.loaders.ahead import ahead
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.native import set_threads
from sparknet.net import Net
from sparknet.net.backend import CPU
from sparknet.net.portable import Portable
from sparknet.net.scratch import scratch_folder
from sparknet.spark.box_frames import BoxFrames
from sparknet.spark.column_types import plain
from sparknet.spark.columns import Wanted
from sparknet.spark.files import received
from sparknet.spark.gpu_turns import Turns
from sparknet.spark.outputs import Array, At, Collected, Output
from sparknet.spark.place_of_task import device_of
from sparknet.spark.places import in_one_line
from sparknet.spark.row_parts import RowPart, RowReader
from sparknet.spark.shared_weights import SharedWeights
from sparknet.spark.texts import Texts
from sparknet.spark.worker_cache import cached
from sparknet.torch.chosen import device_of_worker, name_of_device, takes_gpu_of_task

if TYPE_CHECKING:
    import pyarrow as pa

    from sparknet.caffe.precision import Precision

Invalid = Literal["raise", "null", "drop"]


@dataclass(frozen=True)
class Prediction:
    """The settings of a task, without the weights: executors fetch those as a file, once."""

    mapping: dict[str, str]
    shapes: dict[str, Wanted]
    outputs: Sequence[Output]
    batch: int
    """Records that go through the net at a time."""
    most: int
    """The largest number of rows in an Arrow batch of results."""
    invalid: Invalid = "raise"
    reason: str | None = None
    """The column for what is wrong with a row."""
    key: str | None = None
    """The column whose value names a row in messages."""
    pictures: BoxFrames | None = None
    """The pictures in which boxes are found, where those are told in pixels."""
    preprocessing: Preprocessing | None = None
    """What was asked for images."""
    precision: Precision = "float32"
    device: str | None = None
    """PyTorch's name of where the net computes."""
    tasks_per_gpu: int | None = None
    """How many tasks may compute there at once."""
    texts: Texts | None = None
    """What makes the inputs of a column of texts."""
    net: Portable = field(default_factory=lambda: Portable("", {}))
    weights: str = ""
    """The file of the weights, as SparkFiles knows it."""

    @property
    def columns(self) -> list[str]:
        """The columns that a task reads."""
        more = [] if self.key is None else [self.key]
        return list(dict.fromkeys([*self.mapping.values(), *more]))

    @property
    def cache_key(self) -> Any:
        """What tells the net of this task from others in a Python worker."""
        where = self._device, self.tasks_per_gpu
        return self.weights, self.net.text, self.preprocessing, self.precision, where

    @property
    def _device(self) -> str | None:
        """Of "cuda" and "auto" the GPU that Spark gave this task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None or not takes_gpu_of_task(self.device):
            return self.device
        gpu = device_of(context.resources())
        return device_of_worker(self.device, context.partitionId(), None if gpu == CPU else gpu)

    def make_net(self) -> WorkerNet:
        set_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        weights = SharedWeights(received(self.weights))
        with scratch_folder() as folder:
            text = self.net.unpacked(Path(folder))
            net = Net(
                text,
                weights.flat,
                preprocessing=self.preprocessing,
                precision=self.precision,
                device=self._device,
            )
            _ = net.tested  # reads the folder's files
        return WorkerNet(net, weights, self._turns(net.tested.net.device))

    def _turns(self, device: str | None) -> Turns | None:
        """Where PyTorch computes, and tasks are not to do so all at once."""
        if device is None or self.tasks_per_gpu is None:
            return None
        return Turns(name_of_device(device), self.tasks_per_gpu)


@dataclass(frozen=True)
class WorkerNet:
    """A net, in a Python worker over weights that all workers share."""

    net: Net
    weights: SharedWeights | None = None
    turns: Turns | None = None

    def run(self, values: dict[str, Array], blobs: Sequence[str]) -> dict[str, Array]:
        """The blobs, in the net's memory."""
        if self.turns is None:
            made = self.net.tested.views(values, blobs)
        else:
            with self.turns.taken():
                made = self.net.tested.views(values, blobs)
                self.trim()
        if self.weights is not None:
            self.weights.check()
        return made

    def trim(self) -> None:
        """Give back the memory that only a pass needs."""
        self.net.tested.net.trim()


@dataclass(frozen=True)
class PredictedRows:
    """Rows as they came, and the columns that were made of them."""

    rows: pa.RecordBatch
    columns: list[pa.Array]
    valid: Array


def predicted(batches: Iterable[pa.RecordBatch], given: Prediction) -> Iterator[PredictedRows]:
    """The rows of a partition with their predictions.

    The first come back after one batch of the net, for `show` and `limit`, then twice as many each
    time, up to the whole Arrow batch.
    """
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    reader = RowReader(given, context.partitionId() if context is not None else 0)
    with in_one_line():
        worker = cached(given.cache_key, given.make_net)
        yield from pieces(ahead(reader.parts(ahead(batches))), given, worker)
        worker.trim()


def pieces(
    parts: Iterable[RowPart], given: Prediction, worker: WorkerNet
) -> Iterator[PredictedRows]:
    """Yield the rows of each Arrow batch of results with their predictions.

    Rows before a bad one come first, so that a ``limit`` that they satisfy meets no error.
    """
    piece = None
    try:
        for part in parts:
            piece = piece or _Piece(given, worker, part.rows)
            piece.add(part)
            if part.is_last:
                done, piece = piece.done(), None
                yield done
    except SparkNetError:
        if piece is not None and (done := piece.done()).rows.num_rows:
            yield done
        raise


class _Piece:
    """The columns of an Arrow batch of results as they are filled."""

    def __init__(self, given: Prediction, worker: WorkerNet, rows: pa.RecordBatch) -> None:
        self._given, self._worker, self._rows = given, worker, rows
        self._blobs = list(dict.fromkeys(output.blob for output in given.outputs))
        self._columns = [output.collect(rows.num_rows) for output in given.outputs]
        self._errors: dict[int, str] = {}
        self._is_done = np.zeros(rows.num_rows, bool)

    def add(self, part: RowPart) -> None:
        for number, error in part.errors.items():
            self._errors[number] = str(error)
        if not len(part.at):
            return
        try:
            self._run(part)
        except SparkNetError as error:
            if len(part.at) == 1:
                self._refuse(part, error)
                return
            for one in part.singly():
                self.add(one)

    def _run(self, part: RowPart) -> None:
        made = self._worker.run(part.values, self._blobs)
        at: Any = part.at
        if len(at) == at[-1] - at[0] + 1 and (at[1:] > at[:-1]).all():
            at = slice(int(at[0]), int(at[-1]) + 1)
        puts: list[Callable[[], None]] = []
        for output, column in zip(self._given.outputs, self._columns, strict=True):
            check_made(output, made[output.blob], len(part.at))
            puts.append(partial(_put, output, column, at, made[output.blob], part))
        for put in puts:
            put()
        self._is_done[at] = True

    def _refuse(self, part: RowPart, error: SparkNetError) -> None:
        """A row that the net cannot compute with."""
        if self._given.invalid == "raise":
            raise part.placed(error)
        self._errors[int(part.at[0])] = str(error)

    def done(self) -> PredictedRows:
        """Return the rows up to the first one that is neither predicted nor refused."""
        import pyarrow as pa

        valid = self._is_done
        columns = [column.arrow(valid) for column in self._columns]
        if self._given.reason is not None:
            reasons = [self._errors.get(number) for number in range(self._rows.num_rows)]
            columns.append(pa.array(reasons, pa.string()))
        is_known = valid.copy()
        is_known[list(self._errors)] = True
        count = len(valid) if is_known.all() else int(is_known.argmin())
        return PredictedRows(
            self._rows.slice(0, count), [one.slice(0, count) for one in columns], valid[:count]
        )


def check_made(output: Output, made: Array, count: int) -> None:
    """SparkError if a blob has no row for each record, or a value that is not finite."""
    if not np.isfinite(made).all():
        odd = made[~np.isfinite(made)][0]
        raise SparkError(
            f"blob '{output.blob}' became {odd:g}, though its record has finite values"
        )
    if not output.is_list and (made.ndim <= output.axis or made.shape[output.axis] != count):
        raise SparkError(f"blob '{output.blob}' became {made.shape} for {count} records")


def _put(output: Output, column: Collected, at: At, made: Array, part: RowPart) -> None:
    column.put(at, output.rows(made, len(part.at)), part.frames)


# -- as Spark calls it -----------------------------------------------------------------------


def valid_rows(batches: Iterable[pa.RecordBatch], given: Prediction) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: the rows that the net can compute with, and their predictions."""
    import pyarrow as pa

    names = [f"sparknet_{number}" for number in range(len(given.outputs))]
    for piece in predicted(batches, given):
        columns = [*piece.rows.columns, *piece.columns]
        whole = pa.RecordBatch.from_arrays(columns, [*piece.rows.schema.names, *names])
        yield whole if piece.valid.all() else whole.filter(pa.array(piece.valid))


def structs(columns: Iterable[Any], given: Prediction, names: Sequence[str]) -> Iterator[pa.Array]:
    """For an Arrow function: the columns made as one column of structs, or the only one."""
    import pyarrow as pa

    for piece in predicted((_batch(one, given) for one in columns), given):
        if not names:
            yield piece.columns[0]
            continue
        yield pa.StructArray.from_arrays(piece.columns, names=list(names))


def frames(columns: Iterable[Any], given: Prediction, names: Sequence[str]) -> Iterator[Any]:
    """For a pandas function: the same, as data frames or series."""
    import pandas as pd

    for piece in predicted((_batch(one, given) for one in columns), given):
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
    """What Spark hands over, an array of Arrow, a series or a struct's frame of pandas."""
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    if hasattr(column, "columns"):
        fields = [_array(column[name]) for name in column.columns]
        return pa.StructArray.from_arrays(fields, names=list(column.columns))
    # Else a NaN inside a list would be a null.
    return pa.array(column, from_pandas=column.dtype != object)
