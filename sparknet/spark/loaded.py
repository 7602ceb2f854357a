"""load: a saved model that predicts in this process, without Spark and without pyspark."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import FileError, SparkError, SparkNetError, extra
from sparknet.loaders.batches import ahead
from sparknet.net.heads import Head
from sparknet.net.model_folder import check_files, read_folder
from sparknet.net.ranges import warn_of_pictures
from sparknet.predict.columns import plain
from sparknet.predict.files import local_path
from sparknet.predict.local_rows import (
    Array,
    ModuleInput,
    Taken,
    batch_of,
    frame,
    is_frame,
    listed,
    numbers,
)
from sparknet.predict.outputs import Best
from sparknet.predict.prediction import Prediction, RowReader, Worker, pieces
from sparknet.predict.request import Ask
from sparknet.spark.model import SparkModel
from sparknet.spark.module_columns import columns_of
from sparknet.spark.module_model import ModuleModel
from sparknet.spark.predict_task import WorkerNet
from sparknet.spark.saved_stages import stage_metadata
from sparknet.spark.stage_columns import INVALID, StageColumn
from sparknet.spark.stage_models import load_parts
from sparknet.spark.worker_module import WorkerModule
from sparknet.weights.files import is_model_folder
from sparknet.weights.tensors import is_safetensors

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

    from sparknet.predict.request import TransformOptions

__all__ = ["LoadedModel", "load"]


class LoadedModel:
    """A model in this process: `predict` gives what `SparkModel.transform` gives."""

    def __init__(self, model: Any, stage: _Stage | None = None) -> None:
        self.model = model
        """The `SparkModel` or `ModuleModel`: the net or module, and its inputs' columns."""
        self._stage = stage
        self._lock = Lock()
        self._planned: tuple[Any, Ask, _Plan] | None = None

    def predict(
        self,
        rows: Any,
        outputs: Sequence[str] | None = None,
        **keywords: Unpack[TransformOptions],
    ) -> Any:
        """The results of ``rows``: a data frame of them for a data frame of pandas, else a dict.

        Rows are a data frame, a dict of columns, or the values of the net's only input: an array
        with a row for each record, a list of arrays, of bytes (encoded images or raw values), of
        images' paths, or of texts for a model with a tokenizer.  ``outputs`` and the keywords are
        those of `SparkModel.transform`; ``vectors`` changes nothing here.  In the dict a blob is an
        array of numpy with a row for each record, and what has structs is a list.  Rows that are
        not valid are NaN or None with ``invalid="null"``; a data frame's index tells which ones
        ``invalid="drop"`` left.  A stage of pyspark.ml makes its own columns, unless ``outputs``
        or keywords are given.  Several threads may call it: they take turns.
        """
        with extra("pyarrow", "parquet", "predicting"):
            import pyarrow  # noqa: F401
        with self._lock:
            if self._stage is not None and outputs is None and not keywords:
                found, index = self._stage.columns(self, rows)
            else:
                ask = Ask.of("predict", outputs, keywords)
                found, index = self._asked(self.model, rows, ask)
        return frame(found, index) if is_frame(rows) else found

    @property
    def is_stage(self) -> bool:
        """Whether it is a stage of pyspark.ml, which makes its own columns."""
        return self._stage is not None

    def mapping(self) -> dict[str, str]:
        """The net's inputs that a prediction needs → the rows' columns."""
        columns = {} if self._stage is None else self._stage.inputs(self.model)
        plan: Prediction = self.model.plan(Ask(columns=columns))
        return plan.mapping

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model with its weights, for a function that Spark sends to its tasks."""
        return LoadedModel, (self.model, self._stage)

    def __repr__(self) -> str:
        if isinstance(self.model, ModuleModel):
            return f"<LoadedModel '{type(self.model.module).__name__}'>"
        return f"<LoadedModel '{self.model.net.tested.described.name}'>"

    # -- inside --------------------------------------------------------------------------

    def _asked(self, model: Any, rows: Any, ask: Ask) -> tuple[dict[str, Any], Any]:
        """The columns that are asked for, and the index of their rows."""
        plan = self._plan(model, ask)
        task = plan.task
        given = batch_of(rows, task.mapping, plan.entries, plan.takes_texts)
        if isinstance(model, SparkModel):
            pictures = [name for name, col in task.mapping.items() if _holds_bytes(given, col)]
            warn_of_pictures(model.net.tested, pictures)
        task = _told(task, given)
        made, valid = _predicted(given, task, plan.worker)
        found: dict[str, Any] = {}
        for output, column in zip(task.outputs, made, strict=False):
            values = numbers(column, plan.records.get(output.blob))
            if isinstance(output, Best) and values is not None and np.isfinite(values).all():
                values = values.astype(np.int64)  # as labels are; Spark's evaluators want doubles
            found[output.column] = listed(column) if values is None else values
        if ask.reason is not None:
            found[ask.reason] = listed(made[-1])
        index = rows.index if is_frame(rows) else None
        if ask.invalid == "drop":
            index = None if index is None else index[valid]
            found = {name: _kept(values, valid) for name, values in found.items()}
        return found, index

    def _plan(self, model: Any, ask: Ask) -> _Plan:
        """What is done; the last one again where the same is asked for."""
        last = self._planned
        if last is None or last[0] is not model or last[1] != ask:
            is_module = isinstance(model, ModuleModel)
            made = _Plan.of_module(model, ask) if is_module else _Plan.of(model, ask)
            last = self._planned = model, ask, made
        return last[2]


@dataclass(frozen=True)
class _Plan:
    """What is done for each call of the same kind."""

    task: Prediction
    worker: Any
    """What computes: a `WorkerNet` or a `WorkerModule`."""
    entries: Mapping[str, Taken]
    records: dict[str, tuple[int, ...]]
    """The shape of a record of each output's blob, where it has one."""
    takes_texts: bool = False

    @classmethod
    def of(cls, model: SparkModel, ask: Ask) -> _Plan:
        tested, task = model.net.tested, model.plan(ask)
        if model.tokens is not None:
            task = replace(task, texts=model.tokens.here(tested))
        shapes, _ = tested.layout()
        records = {
            one.blob: tuple(size for axis, size in enumerate(shapes[one.blob]) if axis != one.axis)
            for one in task.outputs
            if not one.is_list
        }
        entries = {entry.name: entry for entry in tested.entries}
        return cls(task, WorkerNet(model.net), entries, records, model.tokens is not None)

    @classmethod
    def of_module(cls, model: ModuleModel, ask: Ask) -> _Plan:
        made = model.computed(model.records)
        taken = {name: ModuleInput(one.shape[1:]) for name, one in model.records.items()}
        records = {name: one.shape[1:] for name, one in made.items() if one.ndim}
        return cls(model.plan(ask), WorkerModule(model.module, model.derived), taken, records)


def load(
    net: Any,
    weights: Any = None,
    *,
    trusted: bool | None = None,
    module: Any = None,
    **keywords: Any,
) -> LoadedModel:
    """A model that predicts in this process: no Spark runs, and pyspark need not be installed.

    ``net`` is what `SparkModel` takes, with its keywords: a caffemodel that `SparkModel.save`
    wrote, a .onnx, a prototxt with ``weights``, a `Net`; or a `SparkModel` or `ModuleModel`; or
    the folder of a saved `NetModel` or `NetFeaturizer`; or what `ModuleModel.save` wrote, with
    ``module`` as `ModuleModel.load` takes it.  It needs pyarrow
    (``pip install 'sparknet[parquet]'``).
    """
    if module is not None:
        keywords["module"] = module
    if isinstance(net, (SparkModel, ModuleModel)):
        if weights is not None or keywords:
            what = "weights" if weights is not None else next(iter(keywords))
            kind = type(net).__name__
            raise SparkError(f"a {kind} has its {what} already: give it to that")
        return LoadedModel(net)
    folder = _folder(net)
    if _is_module(net, folder) and weights is None:
        for name in keywords.keys() - {"module"}:
            raise SparkError(f"a module has no {name}: {net} is a module of PyTorch")
        return LoadedModel(ModuleModel.load(net, module, trusted=trusted))
    if folder is None or is_model_folder(folder):
        return LoadedModel(SparkModel(net, weights, trusted=trusted, **keywords))
    if weights is not None or keywords:
        what = "weights" if weights is not None else next(iter(keywords))
        raise SparkError(f"{folder} is a saved stage, which has its {what} already")
    return _loaded_stage(folder, bool(trusted))


def _folder(net: Any) -> Path | None:
    """The local folder that a path names, if it does."""
    if not isinstance(net, (str, os.PathLike)):
        return None
    here = local_path(net)
    return Path(here) if here is not None and os.path.isdir(here) else None  # noqa: PTH112 - a text


def _is_module(source: Any, folder: Path | None) -> bool:
    """Whether it is the path of a module's files."""
    if folder is not None:
        return is_model_folder(folder) and "module" in read_folder(folder)
    return isinstance(source, (str, os.PathLike)) and is_safetensors(source)


def _loaded_stage(folder: Path, trusted: bool) -> LoadedModel:
    metadata = stage_metadata(folder)
    kind = _STAGES.get(str(metadata.get("class", "")).rpartition(".")[2])
    if kind is None:
        raise FileError(folder, _what_else(folder, metadata))
    check_files(folder, metadata)
    try:
        model = load_parts(folder, metadata, trusted)
        return LoadedModel(model, kind(model, metadata))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SparkNetError):
            raise
        raise FileError(folder, f"is no saved stage: {error!r}") from error


def _what_else(folder: Path, metadata: Mapping[str, Any]) -> str:
    kind = str(metadata.get("class", "a class without a name")).rpartition(".")[2]
    nets = [
        f"stages/{stage.name}"
        for stage in sorted((folder / "stages").glob("*"))
        if any(stage.name.partition("_")[2].startswith(known) for known in _STAGES)
    ]
    if nets:
        return (
            f"is a {kind}, whose other stages need Spark: load its stage of a net, "
            f"{' or '.join(nets)}"
        )
    return f"is a {kind}, and what is loaded is a {' or a '.join(_STAGES)}"


class _Stage(ABC):
    """The columns that a saved stage adds."""

    def __init__(self, model: Any, metadata: Mapping[str, Any]) -> None:
        self._set: dict[str, Any] = dict(metadata["paramMap"])
        self._given = {**metadata["defaultParamMap"], **self._set}
        self._invalid = INVALID[self.given("handleInvalid") or "error"]

    def given(self, name: str) -> Any:
        """The value of a Param; None where it has none."""
        return self._given.get(name)

    @abstractmethod
    def inputs(self, model: Any) -> dict[str, str]:
        """The net's inputs → the rows' columns."""

    @abstractmethod
    def columns(self, loaded: LoadedModel, rows: Any) -> tuple[dict[str, Any], Any]:
        """The columns, and the index of their rows."""


class _NetModel(_Stage):
    def __init__(self, model: Any, metadata: Mapping[str, Any]) -> None:
        super().__init__(model, metadata)
        self._columns = columns_of(model, [Head.of(head) for head in metadata["heads"]])

    def inputs(self, model: Any) -> dict[str, str]:
        return self._columns.inputs(self.given, self._set.__contains__)

    def columns(self, loaded: LoadedModel, rows: Any) -> tuple[dict[str, Any], Any]:
        blobs = self._columns.blobs(self.given("outputs"))
        model, _ = self._columns.serving(self._columns.heads(self.given("outputs")))
        wanted = list(self._columns.columns(self.given))
        needed = list(dict.fromkeys([*blobs, *(column.blob for column in wanted)]))
        ask = Ask(
            outputs=needed,
            columns=self.inputs(model),
            batch=self.given("batch"),
            invalid=self._invalid,
        )
        found, index = loaded._asked(model, rows, ask)
        prefix = self.given("prefix") or ""
        made = {prefix + blob: found[blob] for blob in blobs}
        for one in wanted:
            if one.name in made:
                raise SparkError(f"the stage makes two columns '{one.name}': give another name")
            made[one.name] = _made(one, found[one.blob])
        return made, index


class _NetFeaturizer(_Stage):
    def inputs(self, model: Any) -> dict[str, str]:
        columns: dict[str, str] = self.given("columns") or {}
        if column := self.given("inputCol"):
            columns = {model.net.tested.entries[0].name: column, **columns}
        return columns

    def columns(self, loaded: LoadedModel, rows: Any) -> tuple[dict[str, Any], Any]:
        output, model = self.given("output"), loaded.model
        columns = self.inputs(model)
        wanted = None if output is None else [output]
        blob = model.asked(wanted, columns=columns)[0].blob
        ask = Ask(outputs=[blob], columns=columns, batch=self.given("batch"), invalid=self._invalid)
        found, index = loaded._asked(model, rows, ask)
        return {self.given("outputCol"): _flat(found[blob])}, index


_STAGES: dict[str, Callable[[Any, Mapping[str, Any]], _Stage]] = {
    "NetModel": _NetModel,
    "NetFeaturizer": _NetFeaturizer,
}


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1) if len(values) else values.reshape(0, 0)


def _made(column: StageColumn, values: Array) -> Any:
    """What pyspark.ml's column holds, of a blob's numbers."""
    rows = _flat(values)
    if column.made == "number":
        return rows[:, 0].astype(np.float64)
    if column.made == "class":
        places = rows.argmax(1).astype(np.float64) if rows.size else np.zeros(len(rows))
        places[np.isnan(rows).any(1)] = np.nan
        return places
    if column.made == "labels":
        return [np.flatnonzero(row > 0).astype(np.float64) for row in rows]
    return rows.astype(np.float64)


def _kept(values: Any, valid: Array) -> Any:
    if isinstance(values, np.ndarray):
        return values[valid]
    return [value for value, good in zip(values, valid, strict=True) if good]


def _predicted(
    given: pa.RecordBatch, task: Prediction, worker: Worker
) -> tuple[list[pa.ChunkedArray], Array]:
    """The columns of all rows, and which rows are valid."""
    import pyarrow as pa

    parts = RowReader(task, None).parts([given])
    done = list(pieces(ahead(parts) if given.num_rows > task.batch else parts, task, worker))
    columns = [
        pa.chunked_array(list(of)) for of in zip(*(one.columns for one in done), strict=True)
    ]
    return columns, np.concatenate([one.valid for one in done])


def _told(task: Prediction, given: pa.RecordBatch) -> Prediction:
    """The task, with boxes told from 0 to 1 where no picture says how large it is."""
    is_told = task.pictures is None or _holds_bytes(given, task.pictures.column)
    return task if is_told else replace(task, pictures=None)


def _holds_bytes(given: pa.RecordBatch, column: str) -> bool:
    """Whether a column holds bytes or structs, as pictures are."""
    import pyarrow as pa

    kind = given.column(plain(column)).type
    of = pa.types
    return bool(of.is_binary(kind) or of.is_large_binary(kind) or of.is_struct(kind))
