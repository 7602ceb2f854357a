"""load: a saved model that predicts in this process, without Spark and without pyspark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import FileError, SparkError, SparkNetError, extra
from sparknet.loaders.batches import ahead
from sparknet.loaders.preprocessing import ImageSettings, Preprocessing
from sparknet.net.files import local_path
from sparknet.net.model import Array, Model
from sparknet.net.model_folder import check_files
from sparknet.predict.input_columns import check_finite, column_map, holds_bytes
from sparknet.predict.local_rows import (
    arrow_batch,
    batch_of,
    frame,
    is_frame,
    listed,
    numbered,
    numbers,
    with_features,
)
from sparknet.predict.metrics import Evaluation, evaluate_rows, head_columns
from sparknet.predict.output_columns import Best, Scalar, Values
from sparknet.predict.prediction import Prediction, RowReader, check_made, pieces
from sparknet.predict.predictor import Predictor
from sparknet.predict.request import Request
from sparknet.predict.source import predictor_of, with_texts
from sparknet.predict.stage import STAGES, SavedColumns, load_parts, stage_metadata
from sparknet.weights.files import is_model_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

    from sparknet.predict.request import TransformOptions

__all__ = ["LoadedModel", "load"]

_REASON = "sparknet_reason"
_USUAL = Request()


class LoadedModel:
    """A model in this process: `predict` gives what `SparkModel.transform` gives."""

    def __init__(self, model: Predictor, stage: SavedColumns | None = None) -> None:
        self.model = model
        """The `Predictor`: the net or module, and its inputs' columns."""
        self._stage = stage
        self._lock = Lock()
        self._planned: tuple[Any, Request, _Plan] | None = None

    def predict(
        self,
        rows: Any,
        outputs: Sequence[str] | None = None,
        **keywords: Unpack[TransformOptions],
    ) -> Any:
        """Return the results of ``rows``: a data frame of them for a data frame of pandas, else
        a dict.

        Rows are a data frame, a dict of columns, or the values of the net's only input: an array
        with a row for each record, a list of arrays, of bytes (encoded images or raw values), of
        images' paths, or of texts for a model with a tokenizer.  ``outputs`` and the keywords are
        those of `SparkModel.transform`; ``vectors`` changes nothing here.  In the dict a blob is an
        array of numpy with a row for each record, and what has structs is a list.  Rows that are
        not valid are NaN or None with ``invalid="null"``; a data frame's index tells which ones
        ``invalid="drop"`` left.  A stage of pyspark.ml makes its own columns, unless ``outputs``
        or keywords are given.  Several threads may call it: they take turns.
        """
        with self._lock:
            if self._stage is not None and outputs is None and not keywords:
                columns, index = self._stage.columns(partial(self._columns, rows))
            else:
                is_usual = outputs is None and not keywords
                request = _USUAL if is_usual else Request.of("predict", outputs, keywords)
                columns, index = self._columns(rows, self.model, request)
        return frame(columns, index) if is_frame(rows) else columns

    def evaluate(
        self,
        rows: Any,
        label: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        batch: int | None = None,
        invalid: Literal["raise", "drop"] = "raise",
    ) -> Evaluation:
        """Return what `SparkModel.evaluate` returns, of a data frame or a dict of columns.

        ``label`` names the column of the truth, which may hold the classes' names.
        """
        if not is_frame(rows) and not isinstance(rows, Mapping):
            raise SparkError("evaluate needs a data frame or a dict with a column of the truth")
        own, there = self.model.columns | column_map(columns), list(rows)
        judged = head_columns(
            *(self.model.heads(Request(columns=columns)), label, own),
            lambda name: name if name in there else None,
            self.model.truth_shapes(),
        )
        names = list(dict.fromkeys(one.scores for one in judged))
        drops = invalid == "drop"
        request = Request(outputs=names, columns=columns, batch=batch)
        if drops:
            request = replace(request, invalid="null", reason=_REASON)
        with self._lock:
            table, _ = self._columns(rows, self.model, request)
        valid = np.array([reason is None for reason in table.pop(_REASON, ())], bool)
        table |= {one.truth: numbered(rows[one.truth], self.model.labels) for one in judged}
        if drops:
            table = {name: np.asarray(values)[valid] for name, values in table.items()}
        return evaluate_rows(judged, arrow_batch(table), drops, int((~valid).sum()))

    @property
    def is_stage(self) -> bool:
        """Whether it is a stage of pyspark.ml, which makes its own columns."""
        return self._stage is not None

    def mapping(self) -> dict[str, str]:
        """Return the net's inputs that a prediction needs → the rows' columns."""
        columns = {} if self._stage is None else self._stage.inputs(self.model)
        return self.model.mapping(Request(columns=columns))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model with its weights, for a function that Spark sends to its tasks."""
        return LoadedModel, (self.model, self._stage)

    def __repr__(self) -> str:
        return f"<LoadedModel '{self.model.name}'>"

    # -- inside --------------------------------------------------------------------------

    def _columns(self, rows: Any, model: Predictor, request: Request) -> tuple[dict[str, Any], Any]:
        """Return the columns that are asked for, and the index of their rows."""
        plan = self._plan(model, request)
        if plan.is_plain and (quick := _of_arrays(rows, plan, model)) is not None:
            return quick, None
        with extra("pyarrow", "parquet", "predicting"):
            import pyarrow  # noqa: F401
        task = plan.task
        table = with_features(rows, task.mapping, model.features)
        batch = batch_of(table, task.mapping, model.inputs, model.tokens is not None)
        model.warn_of_batch(batch, task.mapping)
        # Boxes run from 0 to 1 where no picture says how large it is.
        is_told = task.pictures is None or holds_bytes(batch, task.pictures.column)
        task = task if is_told else replace(task, pictures=None)
        arrays, valid = _predicted(batch, task, model.model)
        columns: dict[str, Any] = {}
        for output, column in zip(task.outputs, arrays, strict=False):
            values = numbers(column, plan.records.get(output.blob))
            if isinstance(output, Best) and values is not None and np.isfinite(values).all():
                values = values.astype(np.int64)  # as labels are; Spark's evaluators want doubles
            columns[output.column] = listed(column) if values is None else values
        if request.reason is not None:
            columns[request.reason] = listed(arrays[-1])
        index = rows.index if is_frame(rows) else None
        if request.invalid == "drop":
            index = None if index is None else index[valid]
            columns = {name: _select(values, valid) for name, values in columns.items()}
        return columns, index

    def _plan(self, model: Predictor, request: Request) -> _Plan:
        """Return what is done; the last plan again where the same is asked for."""
        last = self._planned
        if last is None or last[0] is not model or last[1] is not request != last[1]:
            last = self._planned = model, request, _Plan.of(model, request)
        return last[2]


@dataclass(frozen=True)
class _Plan:
    """What is done for each call of the same kind."""

    task: Prediction
    records: dict[str, tuple[int, ...]]
    """The shape of a record of each output's blob, where it has one."""

    is_plain: bool
    """Whether arrays of numbers need no Arrow: no images or texts, and every row is valid."""

    @classmethod
    def of(cls, model: Predictor, request: Request) -> _Plan:
        task = model.plan(request)
        is_plain = (
            (request.invalid, request.reason, task.texts, task.pictures) == ("raise", *[None] * 3)
            and not any(None in task.shapes[name].shape for name in task.mapping)
            and all(isinstance(output, Scalar | Values) for output in task.outputs)
        )
        return cls(task, model.record_shapes(task.outputs), is_plain)


def _of_arrays(rows: Any, plan: _Plan, model: Predictor) -> dict[str, Any] | None:
    """Return the columns of arrays of numbers in the net's own shapes, without Arrow.

    None if something is wrong with them: the usual way then names the row.
    """
    task = plan.task
    if not isinstance(rows, Mapping):
        rows = dict.fromkeys(task.mapping.values(), rows) if len(task.mapping) == 1 else {}
    values = {name: rows.get(column) for name, column in task.mapping.items()}
    if not all(isinstance(array, np.ndarray) and array.ndim for array in values.values()):
        return None
    count = len(next(iter(values.values()), ()))
    for name, array in values.items():
        is_plain = array.dtype.kind in "biuf" and array.dtype.isnative and array.dtype != np.float16
        if not is_plain or array.shape != (count, *task.shapes[name].shape):
            return None
    if not 0 < count <= task.batch:
        return None
    columns = {}
    try:
        for name, array in values.items():
            check_finite(array, name)
        blobs = model.model.forward(values, list(dict.fromkeys(one.blob for one in task.outputs)))
        for output in task.outputs:
            check_made(output, blobs[output.blob], count)
            columns[output.column] = _numbers_of(output, blobs[output.blob], count, plan)
    except SparkNetError:
        return None
    return columns


def _numbers_of(output: Any, blob: Array, count: int, plan: _Plan) -> Array:
    """Return the caller's own array of an output, as `numbers` makes it of Arrow's column."""
    (rows,) = output.parts(output.rows(blob, count))
    if isinstance(output, Best):
        return np.asarray(rows, np.int64)
    shape = (count, *plan.records.get(output.blob, ())) if rows.ndim > 1 else rows.shape
    return np.array(rows.reshape(shape if prod(shape) == rows.size else rows.shape))


def load(
    net: Any,
    weights: Any = None,
    *,
    trusted: bool | None = None,
    module: Any = None,
    **keywords: Any,
) -> LoadedModel:
    """Return a model that predicts in this process: no Spark runs, and pyspark need not be
    installed.

    ``net`` is what `SparkModel` takes, with its keywords: a caffemodel that `SparkModel.save`
    wrote, a .onnx, a prototxt with ``weights``, a `Net`; or a `SparkModel`; or the folder
    of a saved `NetModel` or `NetFeaturizer`.  ``module`` makes the module of a saved one, as for
    `SparkModel`.  It needs pyarrow
    (``pip install 'sparknet[parquet]'``).
    """
    predictor = net if isinstance(net, Predictor) else getattr(net, "predictor", None)
    if predictor is not None:  # a SparkModel has one
        if weights is not None or keywords or module is not None:
            what = "weights" if weights is not None else next(iter(keywords), "module")
            kind = type(net).__name__
            raise SparkError(f"a {kind} has its {what} already: give it to that")
        return LoadedModel(predictor)
    folder = _folder(net)
    if folder is None or is_model_folder(folder):
        image_settings = ImageSettings.__annotations__
        images: Any = {name: keywords.pop(name) for name in [*keywords] if name in image_settings}
        how = Preprocessing.from_keywords(keywords.pop("preprocessing", None), images)
        keywords |= {"trusted": trusted, "module": module, "preprocessing": how}
        return LoadedModel(_predictor(net, weights, keywords))
    if weights is not None or keywords:
        what = "weights" if weights is not None else next(iter(keywords))
        raise SparkError(f"{folder} is a saved stage, which has its {what} already")
    return _loaded_stage(folder, bool(trusted))


def _predictor(net: Any, weights: Any, keywords: dict[str, Any]) -> Predictor:
    """Return the model of what `SparkModel` takes, with its keywords."""
    tokenizer, kind = keywords.pop("tokenizer", None), keywords.pop("pooling", None)
    of = keywords.pop("pooled", None)
    for name in ("device", "tasks_per_gpu"):  # of executors
        keywords.pop(name, None)
    predictor = predictor_of(net, weights, **keywords)
    return with_texts(predictor, tokenizer, kind, of)


def _folder(net: Any) -> Path | None:
    """Return the local folder that a path names, if it does."""
    if not isinstance(net, (str, os.PathLike)):
        return None
    here = local_path(net)
    return Path(here) if here is not None and os.path.isdir(here) else None  # noqa: PTH112 - a text


def _loaded_stage(folder: Path, trusted: bool) -> LoadedModel:
    metadata = stage_metadata(folder)
    kind = STAGES.get(str(metadata.get("class", "")).rpartition(".")[2])
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
        if any(stage.name.partition("_")[2].startswith(kind_of_stage) for kind_of_stage in STAGES)
    ]
    if nets:
        return (
            f"is a {kind}, whose other stages need Spark: load its stage of a net, "
            f"{' or '.join(nets)}"
        )
    return f"is a {kind}, and what is loaded is a {' or a '.join(STAGES)}"


def _select(values: Any, valid: Array) -> Any:
    if isinstance(values, np.ndarray):
        return values[valid]
    return [value for value, good in zip(values, valid, strict=True) if good]


def _predicted(
    given: pa.RecordBatch, task: Prediction, model: Model
) -> tuple[list[pa.ChunkedArray], Array]:
    """Return the columns of all rows, and which rows are valid."""
    import pyarrow as pa

    parts = RowReader(task, None).parts([given])
    done = list(pieces(ahead(parts) if given.num_rows > task.batch else parts, task, model.forward))
    columns = [
        pa.chunked_array(list(of)) for of in zip(*(one.columns for one in done), strict=True)
    ]
    return columns, np.concatenate([one.valid for one in done])
