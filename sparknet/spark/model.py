"""SparkModel: a net that predicts columns of a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from sparknet.errors import SettingError, SparkError, SpecError, shown
from sparknet.loaders.preprocessing import ImageSettings, Preprocessing
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.entries import dependent, predictions
from sparknet.net.fed import FedNet
from sparknet.net.heads import Head
from sparknet.net.model_folder import save_model
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.portable import portable_net
from sparknet.net.ranges import warn_of_pictures
from sparknet.onnx.inputs import Axes, Shapes, refuse_axes
from sparknet.predict.columns import named, wanted
from sparknet.predict.evaluation import Evaluation
from sparknet.predict.files import exists, written
from sparknet.predict.outputs import Output
from sparknet.predict.prediction import Invalid, Prediction
from sparknet.predict.request import Ask, TransformOptions, batch_for, find_outputs, largest_results
from sparknet.predict.texts import POOLED, TokenizerFile, pooled
from sparknet.proto.suggest import did_you_mean, one_of
from sparknet.spark.cluster.session import running_session
from sparknet.spark.column_function import FunctionOfColumns
from sparknet.spark.column_types import check_texts, check_types, column_names, told_shapes
from sparknet.spark.evaluating import evaluate
from sparknet.spark.filesystem.broadcast import send_texts, send_weights, weights_name, withdraw
from sparknet.spark.model_source import open_source
from sparknet.spark.predict_task import ModelTask, SentNet
from sparknet.spark.train.frame import frame
from sparknet.spark.transformed import frame_session, is_picture, key_of, pictures_of, transformed
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Unpack

    from sparknet.caffe.precision import Precision

StrPath = str | os.PathLike[str]

FEWEST = 32
"""Texts that go through a net at a time, unless more or `batch=` are asked for."""


class SparkModel(FunctionOfColumns):
    """Predicts with a net: ``SparkModel(net, weights=None)``.

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
    """

    def __init__(
        self,
        net: Net | NetSource,
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
        **images: Unpack[ImageSettings],
    ) -> None:
        how = Preprocessing.given(preprocessing, images)
        said, tokens = ModelInputs(), None
        self.net: Net
        """The net, with the weights for prediction."""
        if isinstance(net, Net):
            self.net = net
        else:
            self.net, said, tokens = open_source(
                *(net, weights, random),
                trusted=trusted,
                preprocessing=how,
                precision=precision,
                dialect=dialect,
                shapes=shapes,
                batch_axis=batch_axis,
            )
        self.columns = said.columns | named(columns)
        self.device = device
        """PyTorch's name of where executors compute; None: where the net does."""
        if tasks_per_gpu is not None and (type(tasks_per_gpu) is not int or tasks_per_gpu < 1):
            raise SettingError(
                f"tasks_per_gpu must be a whole number, at least 1, not {tasks_per_gpu!r}"
            )
        self.tasks_per_gpu = tasks_per_gpu
        """How many tasks of a machine may compute on a GPU at once; None: all of them."""
        self.labels = said.labels or self.net.labels
        """The names of the classes of `top`, where they are known; a file's or others may be
        given to `transform`."""
        if net is self.net and weights is not None:
            raise SpecError("this Net has weights already: give weights with what it was made from")
        if net is self.net and precision not in ("float32", net.precision):
            raise SpecError(f"this Net is made already: give precision={precision!r} to Net itself")
        if net is self.net and how not in (None, self.net.preprocessing):
            raise SpecError(f"this Net is made already: give {how!r} to Net itself")
        if net is self.net and dialect is not None:
            raise SpecError(f"this Net is made already: give dialect={dialect!r} to Net itself")
        if net is self.net:
            refuse_axes("this Net is made already", shapes, batch_axis)
        self.tokens = tokens if tokenizer is None else TokenizerFile.read(tokenizer)
        """What makes numbers of texts, if the net takes texts."""
        if pooling is None and pooled is not None:
            raise SpecError(f"pooled={pooled!r} is for pooling, which is not given")
        if pooling is not None:
            self._pool(pooling, pooled)

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
        """
        data = self._frame(data, columns, outputs)
        session = frame_session(data)
        ask = Ask(
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
        names = (self.columns | named(columns)).values()
        return transformed(data, names, partial(self.prediction, session, ask))

    def evaluate(
        self,
        data: DataFrame | RDD[Any],
        label: str | None = None,
        *,
        columns: dict[str, str] | None = None,
        heads: Sequence[Head] | None = None,
        batch: int | None = None,
        invalid: Literal["raise", "drop"] = "raise",
    ) -> Evaluation:
        """Accuracy, precision and recall of each class and the confusion matrix; or R², MAE, RMSE.

        The predictions are compared with the columns that the net's losses compare them with, as
        ``columns`` maps them; ``label`` names the first one's.  The executors count; the result
        of a net with several predictions is the first one's, which has ``others``.
        Rows that `transform` cannot predict, or whose truth is missing or does not fit, fail the
        job, or are left out and counted as ``dropped`` (``invalid="drop"``).
        """
        data = self._frame(data, columns)
        return evaluate(self, data, label, named(columns), heads, batch, invalid)

    def asked(
        self, outputs: Sequence[str] | None = None, **keywords: Unpack[TransformOptions]
    ) -> list[Output]:
        """The columns that `transform` adds; raises for arguments that fit no data."""
        return self.outputs(Ask(outputs=outputs, **keywords))

    def function(self, ask: Ask) -> tuple[list[Output], dict[str, str]]:
        made = self.outputs(ask)
        return made, self.mapping([one.blob for one in made], {})

    def outputs(self, ask: Ask) -> list[Output]:
        """The columns that are asked for."""
        tested = self.net.tested
        entries = [entry.name for entry in tested.entries]
        for name in named(ask.columns):
            if name not in entries:
                near = did_you_mean(name, entries)
                if (column := named(ask.columns)[name]) in entries:
                    near = f": say columns={{'{column}': '{name}'}}"
                raise SparkError(
                    f"columns names '{name}', but the net's inputs are {entries}{near}"
                )
        chosen = self._outputs(tested, ask.outputs)
        return find_outputs(tested, {name: ask.prefix + name for name in chosen}, ask, self.labels)

    def prediction(
        self, session: SparkSession, ask: Ask, data: DataFrame | None = None
    ) -> ModelTask:
        """The task for a DataFrame, or for columns of any."""
        given, tested = self.plan(ask, data), self.net.tested
        if self.tokens is not None:
            given = replace(given, texts=send_texts(session, self.tokens, tested))
        sent = SentNet(
            portable_net(tested.described),
            send_weights(session, self._flat()),
            preprocessing=self.net.preprocessing,
            precision=self.net.precision,
            device=self.device or self.net.device,
            tasks_per_gpu=self.tasks_per_gpu,
        )
        return ModelTask(given, sent)

    def plan(self, ask: Ask, data: DataFrame | None = None) -> Prediction:
        """The same without the files that a task fetches."""
        tested, outputs = self.net.tested, self.outputs(ask)
        blobs = list(dict.fromkeys(output.blob for output in outputs))
        mapping = self.mapping(blobs, named(ask.columns), data)
        if data is not None:
            check = check_types if self.tokens is None else check_texts
            check(data, mapping.values(), "the data")
            told, kinds = told_shapes(data, mapping), data.schema
            pictures = [
                name for name, column in mapping.items() if is_picture(kinds[column].dataType)
            ]
            warn_of_pictures(tested, set(pictures) - told.keys())
        batch = ask.batch or batch_for(tested, blobs)
        if self.tokens is not None:
            batch = batch if ask.batch else max(batch, FEWEST)
        shapes = wanted(tested.entries, told=told_shapes(data, mapping))
        return Prediction(
            mapping=mapping,
            shapes=shapes,
            outputs=outputs,
            batch=batch,
            most=largest_results(tested, blobs, batch),
            invalid=ask.invalid,
            reason=ask.reason,
            key=key_of(ask, data),
            pictures=pictures_of(tested, mapping, outputs, data, shapes),
        )

    def save(self, path: StrPath) -> None:
        """Write a folder that `SparkModel`, `sparknet.load` and the command line read: the net, its
        weights, the columns, what happens to images, the classes' names.

        A name that ends in .caffemodel or .h5 makes it a file, with others of its name beside it.
        ``path`` is any path that Spark can write.
        """
        said = ModelInputs(self.columns, self.net.preprocessing, self.labels)
        tokenizer = None if self.tokens is None else self.tokens.text
        save_model(self.net, path, said, tokenizer, written, exists)

    def __repr__(self) -> str:
        return f"<SparkModel '{shown(self.net.tested.described.name)}'>"

    def unpersist(self) -> None:
        """Delete the file of the weights on the driver and the executors, as in Spark's own words.

        Each model leaves one there until the session ends.  Compute the DataFrames that `transform`
        made before; a new `transform` sends the weights again.
        """
        session = running_session()
        if session is not None:
            withdraw(session, weights_name(self._flat()))

    # -- inside --------------------------------------------------------------------------

    def _frame(
        self, data: Any, columns: dict[str, str] | None, outputs: Sequence[str] | None = None
    ) -> DataFrame:
        """Return a DataFrame as it is, and an RDD as one."""
        if hasattr(data, "mapInArrow") or not hasattr(data, "mapPartitions"):
            return data
        named_by = self.columns | named(columns)
        names = [named_by.get(name, name) for name in self.net.inputs]
        made = self._outputs(self.net.tested, outputs)
        return frame(data, names, "the data", [*self.mapping(made, named(columns)).values()])

    def _pool(self, kind: str, of: str | None) -> None:
        if self.tokens is None:
            raise SpecError("pooling is of a net that takes texts: give tokenizer")
        self.tokens.check_pooling(kind)
        net = self.net
        described = pooled(net.tested, kind, of, self.tokens.mask(net.tested))
        self.net = Net(described, self._flat(), precision=net.precision)

    def _outputs(self, tested: FedNet, wanted: Sequence[str] | None) -> list[str]:
        if wanted is None and self.tokens is not None and POOLED in tested.net.blobs:
            return [POOLED]
        if wanted is None:
            return predictions(tested.described, set(tested.net.params))
        for name in wanted:
            if name not in tested.net.blobs:
                raise SpecError(f"the net has no blob '{name}'{one_of(name, tested.net.blobs)}")
        return list(dict.fromkeys(wanted))

    def mapping(
        self, outputs: Sequence[str], columns: dict[str, str], data: DataFrame | None = None
    ) -> dict[str, str]:
        """Input → column, for the inputs that the outputs depend on.

        A DummyData layer fills its own blobs unless a column is named for it.
        """
        tested = self.net.tested
        given = self.columns | columns
        optional = {place.name for place in tested.places if place.is_optional} - given.keys()
        needed = [
            entry.name
            for entry in tested.entries
            if entry.name not in optional
            and not dependent(tested.described, [entry.name]).keys().isdisjoint(outputs)
        ]
        mapping = {name: given.get(name, name) for name in needed}
        if self.tokens is not None:
            ids = self.tokens.ids(tested)
            mapping = {ids: given.get(ids, ids)}
        if data is None:
            return mapping
        mapping = column_names(data, mapping)
        for name, column in mapping.items():
            if column not in data.columns:
                raise SparkError(
                    f"the data has no column '{column}' for the net's input '{name}': it has "
                    f"{data.columns}; say which with columns={{'{name}': …}}"
                    f"{did_you_mean(column, data.columns)}"
                )
        return mapping

    def _flat(self) -> NDArray:
        """The weights in one buffer, in the order of the net that predicts."""
        return WeightCollection.of(self.net.tested.net, copy=None).flat
