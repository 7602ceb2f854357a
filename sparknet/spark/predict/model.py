"""SparkModel: a net or a module that predicts columns of a DataFrame."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import SettingError, SparkError, SpecError, clean, outside
from sparknet.loaders.preprocessing import ImageSettings, Preprocessing
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.heads import Head, Kind
from sparknet.net.model import Array
from sparknet.onnx.inputs import Axes, Shapes
from sparknet.predict.input_columns import column_map
from sparknet.predict.metrics import INVALID, Evaluation
from sparknet.predict.module_predictor import ModulePredictor
from sparknet.predict.net_predictor import NetPredictor
from sparknet.predict.output_columns import Output
from sparknet.predict.prediction import Invalid
from sparknet.predict.predictor import Predictor
from sparknet.predict.profile import Profile
from sparknet.predict.request import FunctionOptions, Request, TransformOptions
from sparknet.predict.source import predictor_of, with_texts
from sparknet.predict.texts import TokenizerFile
from sparknet.spark.cluster.session import running_session
from sparknet.spark.filesystem.broadcast import (
    goes_inside,
    send_texts,
    send_weights,
    weights_name,
    withdraw,
)
from sparknet.spark.predict.evaluate_frame import evaluate
from sparknet.spark.predict.profiling import task_accumulator
from sparknet.spark.predict.table import FrameTable
from sparknet.spark.predict.task import ModelTask, SentModel
from sparknet.spark.predict.transform import ColumnFunction, frame_session, transformed
from sparknet.spark.train.frame import frame
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Unpack

    from sparknet.caffe.precision import Precision

StrPath = str | os.PathLike[str]


class SparkModel:
    """Predicts with a net or a module: ``SparkModel(net, weights=None)``, ``SparkModel(module)``.

    ``net`` is a `Net`, anything that a `Net` is made from, a caffemodel, a .onnx, or the folder of
    a saved model.  Files may lie
    wherever Spark can read: hdfs://…, s3a://….  A net for training works too: it runs in phase
    TEST with its transform_param, and columns that only its losses and accuracies need may be
    missing.  ``columns`` maps its inputs to the data's columns, unless `transform` is given
    others.  ``preprocessing``, or its settings as keywords (``resize=256, crop=224,
    mean=(104, 117, 123)``), says what happens to images: docs/images.md.  ``precision`` is that of
    `Net`; executors whose processor lacks it compute in float32.  ``dialect`` is that of `Net`,
    too: docs/compatibility.md.  ``tokenizer`` is the tokenizer.json of a net that takes texts:
    ``columns={"input_ids": "text"}`` names a column of strings.  ``pooling``, one of "mean", "cls"
    and "max", makes one vector of the tokens' of each text, the blob `pooled`, and `normalized`, of
    length 1; ``pooled`` names the blob of the tokens' vectors where none or several are outputs.
    ``shapes`` and ``batch_axis`` are those of `Net`.  ``tasks_per_gpu`` is how many tasks may
    compute on a GPU at once, if not all that Spark starts there (docs/gpu.md).  A net without
    weights is refused unless ``random=True`` asks for random ones.  The net of a
    caffemodel imports no Python layer, and reads and writes no file, unless ``trusted`` is True.

    ``net`` may also be a module of PyTorch, a function that makes one, or what `save` wrote of one;
    then ``module`` makes the module, unless the file's own class or function is to be called: one
    that this program has imported, or with ``trusted`` any that Python can import.  ``columns``
    maps the arguments of its forward, and ``shapes`` says what a column of bytes or of flat lists
    holds, as in ``{"pixels": [None, 3, 32, 32]}``.  ``records`` are a few records by argument; else
    the data's first ones are looked at.  ``kind`` is what the numbers of the first output are, for
    `evaluate`: "classes" (scores), "labels" (logits) or "numbers".
    """

    profile: Profile | None = None
    """Where the time of the last `transform` with ``profile=True`` goes, as far as tasks ended."""

    def __init__(
        self,
        net: Any,
        weights: StrPath | WeightCollection | NDArray | None = None,
        *,
        columns: dict[str, str] | None = None,
        trusted: bool | None = None,
        preprocessing: Preprocessing | None = None,
        precision: Precision = "float32",
        device: str | None = None,
        tasks_per_gpu: int | None = None,
        dialect: str | None = None,
        tokenizer: StrPath | None = None,
        pooling: Literal["mean", "cls", "max"] | None = None,
        pooled: str | None = None,
        shapes: Shapes | None = None,
        batch_axis: Axes | None = None,
        random: bool = False,
        module: Any = None,
        records: Mapping[str, Array] | None = None,
        kind: Kind | None = None,
        **images: Unpack[ImageSettings],
    ) -> None:
        if tasks_per_gpu is not None and (type(tasks_per_gpu) is not int or tasks_per_gpu < 1):
            raise SettingError(
                f"tasks_per_gpu must be a whole number, at least 1, not {tasks_per_gpu!r}"
            )
        if elsewhere := [name for name in images if name in signature(self.transform).parameters]:
            raise SpecError(f"SparkModel has no keyword '{elsewhere[0]}': give it to transform")
        self.predictor: Predictor = predictor_of(
            net,
            weights,
            random=random,
            columns=columns,
            trusted=trusted,
            preprocessing=Preprocessing.from_keywords(preprocessing, images),
            precision=precision,
            dialect=dialect,
            shapes=shapes,
            batch_axis=batch_axis,
            module=module,
            records=records,
            kind=kind,
        )
        """The net or module, with the columns of its inputs."""
        self.device = device
        """PyTorch's name of where executors compute; None: where the net does."""
        self.tasks_per_gpu = tasks_per_gpu
        """How many tasks of a machine may compute on a GPU at once; None: all of them."""
        with_texts(self.predictor, tokenizer, pooling, pooled)

    @classmethod
    def of(cls, predictor: Predictor) -> SparkModel:
        """Return the model of a predictor, on the executors' own device."""
        model = cls.__new__(cls)
        model.predictor, model.device, model.tasks_per_gpu = predictor, None, None
        return model

    def with_predictor(self, predictor: Predictor) -> SparkModel:
        """Return a model that computes another net or module in the same places."""
        model = copy(self)
        model.predictor = predictor
        return model

    @property
    def net(self) -> Net:
        """The net, with the weights for prediction."""
        return self._net_predictor.net

    @property
    def module(self) -> Any:
        """The module of PyTorch; None for a net."""
        return self.predictor.module if isinstance(self.predictor, ModulePredictor) else None

    @property
    def columns(self) -> dict[str, str]:
        """Input → column, where the names differ."""
        return self.predictor.columns

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes of `top`, where they are known; a file's or others may be
        given to `transform`."""
        return self.predictor.labels

    @property
    def tokens(self) -> TokenizerFile | None:
        """What makes numbers of texts, if the net takes texts."""
        return self.predictor.tokens

    def transform(
        self,
        data: DataFrame | RDD[Any],
        outputs: Sequence[str] | None = None,
        *,
        columns: dict[str, str] | None = None,
        prefix: str = "",
        best: str | None = None,
        batch: int | None = None,
        invalid: Invalid = "raise",
        reason: str | None = None,
        key: str | None = None,
        top: int | None = None,
        labels: Sequence[str] | StrPath | None = None,
        mask: Literal["bytes", "runs"] | None = None,
        vectors: bool = False,
        profile: bool = False,
    ) -> DataFrame:
        """Return the data with a column for each of ``outputs``, blobs of the net (its own by
        default).  An RDD has records as for `Trainer.fit`, or without the labels.

        A blob of one value per record becomes a float, any other an array of floats, or with
        ``vectors`` a vector of pyspark.ml.  A DetectionOutput becomes an array of structs (label,
        name, score, xmin, ymin, xmax, ymax), in the pixels of the record's own picture where the
        column holds pictures or bytes, else from 0 to 1.  With ``top`` a blob of one value per
        class becomes an array of as many structs (label, name, score), the highest first;
        ``labels`` are the names, or their file.  With ``mask`` a blob of classes x height x width
        becomes a struct of height, width and the class of each pixel, as bytes or runs.  ``best``
        names a column for the index of the largest value of the first output, a double: the class.

        ``columns`` maps the net's inputs to the data's columns, where the names differ; ``prefix``
        goes before the names of the blobs.  ``batch`` is the batch size; docs/predicting.md says
        what it is unless given.

        ``invalid`` says what happens to rows that cannot be read, or whose results are not finite:
        "raise" fails the job, "null" keeps them with null results, "drop" leaves them out;
        ``reason`` names a column for what is wrong with them.  Messages name a row by the column
        ``key``; else by a column ``path`` or an image's origin, where there is one, or by its
        partition and number.

        With ``profile`` each task measures where its time goes: `profile` has the sums, and the
        driver prints how many rows are done and what is left, at most every ten seconds.
        """
        data = self._frame(data, columns, outputs)
        session = frame_session(data)
        request = Request(
            outputs=outputs,
            columns=columns,
            prefix=prefix,
            best=best,
            batch=batch,
            invalid=invalid,
            reason=reason,
            key=key,
            top=top,
            labels=labels,
            mask=mask,
            vectors=vectors,
        )
        own = self.columns | column_map(columns)
        features = {
            name: parts for name, parts in self.predictor.features.items() if name not in own
        }
        tasks = None
        if profile:
            self.profile = Profile(self.predictor.name)
            tasks = task_accumulator(session, self.profile)

        def predict(rows: DataFrame) -> ModelTask:
            return replace(self.prediction(session, request, rows), profiles=tasks)

        return transformed(data, own.values(), features, predict)

    def evaluate(
        self,
        data: DataFrame | RDD[Any],
        label: str | None = None,
        *,
        columns: dict[str, str] | None = None,
        heads: Sequence[Head] | None = None,
        output: str | None = None,
        kind: Kind | None = None,
        batch: int | None = None,
        invalid: Literal["raise", "drop"] = "raise",
    ) -> Evaluation:
        """Accuracy, precision and recall of each class and the confusion matrix; or R², MAE, RMSE.

        The predictions are compared with the columns that the net's losses compare them with, as
        ``columns`` maps them; ``label`` names the first one's.  The executors count; the result
        of a net with several predictions is the first one's, which has ``others``.
        Rows that `transform` cannot predict, or whose truth is missing or does not fit, fail the
        job, or are left out and counted as ``dropped`` (``invalid="drop"``).

        Of a module ``output`` names the output, the first unless given, and ``kind`` says what its
        numbers are: unless given, what the loss that it was trained with takes them for, else
        classes if there are several for a record.
        """
        if invalid not in INVALID:
            raise SparkError(f"invalid is {invalid!r}: it is one of {', '.join(INVALID)}")
        data = self._frame(data, columns)
        frame_session(data)
        if heads is None:
            request = Request(outputs=None if output is None else [output], columns=columns)
            heads = self.predictor.heads(request, FrameTable(data), kind)
        return evaluate(self, data, label, column_map(columns), heads, batch, invalid)

    def udf(
        self, outputs: Sequence[str] | None = None, **keywords: Unpack[FunctionOptions]
    ) -> ColumnFunction:
        """Return the model as a function of columns:
        ``data.select(model.udf(["prob"])("pixels"))``.

        It takes the columns of the inputs in their order, those of the model unless any are given.
        Of one output it makes a column as `transform` does, of several a struct of them.
        ``keywords`` are those of `transform`, but for prefix, key and invalid="drop".
        """
        request = Request.of("udf", outputs, keywords)
        results = self.predictor.outputs(request)
        plain = Request(outputs=[one.blob for one in results])
        return ColumnFunction(request, results, self.predictor.mapping(plain), self.prediction)

    def register(
        self,
        session: SparkSession,
        name: str,
        outputs: Sequence[str] | None = None,
        **keywords: Unpack[FunctionOptions],
    ) -> None:
        """Make `udf` a function of SQL and `expr`: ``SELECT name(pixels) FROM …``."""
        self.udf(outputs, **keywords).register(session, name)

    def result_columns(
        self, outputs: Sequence[str] | None = None, **keywords: Unpack[TransformOptions]
    ) -> list[Output]:
        """Return the columns that `transform` adds; raise for arguments that fit no data."""
        return self.predictor.outputs(Request(outputs=outputs, **keywords))

    def prediction(
        self, session: SparkSession, request: Request, data: DataFrame | None = None
    ) -> ModelTask:
        """Return the task for a DataFrame, or for columns of any."""
        model = self.predictor
        plan = model.plan(request, None if data is None else FrameTable(data))
        flat, content = model.model.weights, None
        is_stream = data is not None and data.isStreaming
        tokens = model.tokens if isinstance(model, NetPredictor) else None
        size = 4 * flat.size + (0 if tokens is None else len(tokens.text))
        is_inside = goes_inside(session, size, is_stream)
        if tokens is not None:
            net = self.net.tested
            texts = tokens.here(net) if is_inside else send_texts(session, tokens, net)
            plan = replace(plan, texts=texts)
        if is_inside:
            name, content = weights_name(flat), bytes(np.asarray(flat).data)
        else:
            name = send_weights(session, flat)
        device = self.device or model.model.device
        sent_model = SentModel(model.portable(), name, content, device, self.tasks_per_gpu)
        return ModelTask(plan, sent_model)

    def save(self, path: StrPath) -> None:
        """Write a folder that `SparkModel`, `sparknet.load` and the command line read: the net or
        module, its weights, the columns, what happens to images, the classes' names.

        A name that ends in .caffemodel or .h5, of a module .safetensors, makes it a file, with
        others of its name beside it.  ``path`` is any path that Spark can write.
        """
        self.predictor.save(path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{clean(self.predictor.name)}'>"

    def unpersist(self) -> None:
        """Delete the file of the weights on the driver and the executors, as in Spark's own words.

        Each model leaves one there until the session ends.  Compute the DataFrames that `transform`
        made before; a new `transform` sends the weights again.
        """
        session = running_session()
        if session is not None:
            withdraw(session, weights_name(self.predictor.model.weights))

    # -- inside --------------------------------------------------------------------------

    @property
    def _net_predictor(self) -> NetPredictor:
        if not isinstance(self.predictor, NetPredictor):
            raise SettingError(f"'{self.predictor.name}' is a module of PyTorch, and no net")
        return self.predictor

    def _frame(
        self, data: Any, columns: dict[str, str] | None, outputs: Sequence[str] | None = None
    ) -> DataFrame:
        """Return a DataFrame as it is, and an RDD as one."""
        if hasattr(data, "mapInArrow") or not hasattr(data, "mapPartitions"):
            return data
        names_of = self.columns | column_map(columns)
        inputs = self.net.inputs if self.module is None else self.predictor.inputs
        names = [names_of.get(name, name) for name in inputs]
        mapping = self.predictor.mapping(Request(outputs=outputs, columns=columns))
        return frame(data, names, "the data", [*mapping.values()])


class ModuleModel(SparkModel):
    """The name of `SparkModel` for modules until 0.2."""

    def __init__(self, module: Any, **settings: Any) -> None:
        _warn("ModuleModel(module)", "SparkModel(module)")
        self.predictor = ModulePredictor(module, **settings)
        self.device, self.tasks_per_gpu = None, None

    @staticmethod
    def load(path: StrPath, module: Any = None, *, trusted: bool | None = None) -> SparkModel:
        """Return the model that `save` wrote."""
        _warn("ModuleModel.load(path)", "SparkModel(path)")
        return SparkModel(path, module=module, trusted=trusted)


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is {new} now", DeprecationWarning, stacklevel=outside())
