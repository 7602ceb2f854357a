"""SparkModel: a net that predicts columns of a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.dist.portable import portable_net
from sparknet.errors import FileError, SparkError, SpecError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.fed import FedNet
from sparknet.net.flow import dependent, predictions
from sparknet.net.heads import Head
from sparknet.onnx import is_onnx, open_model
from sparknet.proto import Model, write_model, write_text
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.address import no_data, session_of
from sparknet.spark.batch import batch_for
from sparknet.spark.column_types import check_types, named, plain
from sparknet.spark.columns import wanted
from sparknet.spark.evaluation import Evaluation, evaluate
from sparknet.spark.files import send
from sparknet.spark.outputs import Output, find_outputs
from sparknet.spark.prediction import Prediction, predict
from sparknet.spark.remote import fetched, written
from sparknet.spark.saved import Saved
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

StrPath = str | os.PathLike[str]

_SUFFIXES = (".caffemodel", ".h5")


class SparkModel:
    """Predicts with a net: ``SparkModel(net, weights=None)``.

    ``net`` is a `Net`, anything that a `Net` is made from, a caffemodel, or a
    .onnx.  Files may lie
    wherever Spark can read: hdfs://…, s3a://….  A net for training works too: it runs in phase
    TEST with its transform_param, and columns that only its losses and accuracies need may be
    missing.  ``columns`` maps its inputs to the data's columns, unless `transform` is given
    others.  ``preprocessing``, or its settings as keywords (``resize=256, crop=224,
    mean=(104, 117, 123)``), says what happens to images: docs/images.md.  The net of a caffemodel
    imports no Python layer, and reads and writes no file,
    unless ``trusted`` is True.
    """

    def __init__(
        self,
        net: Any,
        weights: Any = None,
        *,
        columns: dict[str, str] | None = None,
        trusted: bool | None = None,
        preprocessing: Preprocessing | None = None,
        **images: Any,
    ) -> None:
        how = Preprocessing.given(preprocessing, images)
        saved = Saved() if isinstance(net, Net) or weights is not None else Saved.beside(net)
        self.columns = saved.columns | named(columns)
        self.net: Net = (
            net if isinstance(net, Net) else _net(net, weights, trusted, how or saved.preprocessing)
        )
        """The net, with the weights for prediction."""
        if net is self.net and weights is not None:
            raise SpecError("this Net has weights already: give weights with what it was made from")
        if net is self.net and how not in (None, self.net.preprocessing):
            raise SpecError(f"this Net is made already: give {how!r} to Net itself")

    def transform(
        self,
        data: DataFrame,
        outputs: Sequence[str] | None = None,
        *,
        columns: dict[str, str] | None = None,
        prefix: str = "",
        best: str | None = None,
        batch: int | None = None,
    ) -> DataFrame:
        """The data with a column for each of ``outputs``, blobs of the net (its own by default).

        A blob of one value per record becomes a float, any other an array of floats.  A
        DetectionOutput becomes an array of detections, each an array (label, score, xmin, ymin,
        xmax, ymax).  ``best`` names a column for the index of the largest value of the first
        output: the class.  ``columns`` maps the net's inputs to the data's columns, where the
        names differ; ``prefix`` goes before the names of the blobs.  ``batch`` is the batch size;
        unless given, that of the net's description, or up to 64 where the net can be reshaped.
        """
        if not hasattr(data, "mapInArrow"):
            raise SparkError(f"the data is {no_data(data, 'a DataFrame')}")
        session = session_of(data, "the data")
        predicted = self.asked(outputs, columns=columns, prefix=prefix, best=best, batch=batch)
        tested = self.net.tested
        chosen = [output.blob for output in predicted]
        mapping = self._mapping(tested, chosen, data.columns, named(columns))
        check_types(data, mapping.values(), "the data")
        rows = batch or batch_for(tested, chosen)
        prediction = Prediction(
            weights=self._send(session),
            net=portable_net(tested.described),
            mapping=mapping,
            shapes=wanted(tested.entries),
            outputs=predicted,
            best=best,
            batch=rows,
            preprocessing=self.net.preprocessing,
        )
        schema = _schema(data, predicted, best)
        rows = data.toDF(*map(plain, data.columns))
        made = rows.mapInArrow(partial(predict, prediction=prediction), _plain(schema))
        return made.toDF(*schema.names)

    def evaluate(
        self,
        data: DataFrame,
        label: str | None = None,
        *,
        columns: dict[str, str] | None = None,
        heads: Sequence[Head] | None = None,
        batch: int | None = None,
    ) -> Evaluation:
        """Accuracy, precision and recall of each class and the confusion matrix; or R², MAE, RMSE.

        The predictions are compared with the columns that the net's losses compare them with, as
        ``columns`` maps them; ``label`` names the first one's.  The executors count; the result
        of a net with several predictions is the first one's, which has ``others``.
        """
        return evaluate(self, data, label, named(columns), heads, batch)

    def asked(
        self,
        outputs: Sequence[str] | None = None,
        *,
        columns: dict[str, str] | None = None,
        prefix: str = "",
        best: str | None = None,
        batch: int | None = None,
    ) -> list[Output]:
        """The columns that `transform` adds; raises for arguments that fit no data."""
        check_keywords(outputs, columns=columns, prefix=prefix, best=best, batch=batch)
        tested = self.net.tested
        entries = [entry.name for entry in tested.entries]
        for name in named(columns):
            if name not in entries:
                near = did_you_mean(name, entries)
                raise SparkError(
                    f"columns names '{name}', but the net's inputs are {entries}{near}"
                )
        chosen = self._outputs(tested, outputs)
        found = find_outputs(tested, {name: prefix + name for name in chosen})
        if best is not None and found and found[0].is_list:
            raise SparkError(f"best is of one row a record: '{chosen[0]}' has any number of them")
        return found

    def save(self, path: StrPath) -> None:
        """Write a caffemodel, next to it the net as a .prototxt, and as a .json the columns and
        what happens to images.  `SparkModel(path)` reads all.

        ``path`` is any path that Spark can write.
        """
        name = next(filter(None, (_stem(path, suffix) for suffix in _SUFFIXES)), None)
        if name is None:
            raise FileError(path, f"a model is saved as one of {', '.join(_SUFFIXES)}")
        with written(path) as file:
            write_model(file, self._model())
        with written(f"{name}.prototxt") as file:
            write_text(file, self.net.tested.described)
        with written(f"{name}{Saved.SUFFIX}") as file:
            file.write_text(Saved(self.columns, self.net.preprocessing).to_json())

    def __repr__(self) -> str:
        return f"<SparkModel '{self.net.tested.described.name}'>"

    # -- inside --------------------------------------------------------------------------

    def _outputs(self, tested: FedNet, wanted: Sequence[str] | None) -> list[str]:
        if wanted is None:
            return predictions(tested.described, set(tested.net.params))
        for name in wanted:
            if name not in tested.net.blobs:
                near = did_you_mean(name, tested.net.blobs)
                raise SpecError(f"the net has no blob '{name}'{near}")
        return list(dict.fromkeys(wanted))

    def _mapping(
        self, tested: FedNet, outputs: Sequence[str], has: Sequence[str], columns: dict[str, str]
    ) -> dict[str, str]:
        """Input → column, for the inputs that the outputs depend on.

        A DummyData layer fills its own blobs unless a column is named for it.
        """
        given = self.columns | columns
        optional = {place.name for place in tested.places if place.is_optional} - given.keys()
        needed = [
            entry.name
            for entry in tested.entries
            if entry.name not in optional
            and not dependent(tested.described, [entry.name]).keys().isdisjoint(outputs)
        ]
        mapping = {name: given.get(name, name) for name in needed}
        for name, column in mapping.items():
            if column not in has:
                raise SparkError(
                    f"the data has no column '{column}' for the net's input '{name}': it has "
                    f"{list(has)}; say which with columns={{'{name}': …}}"
                    f"{did_you_mean(column, has)}"
                )
        return mapping

    def _send(self, session: SparkSession) -> str:
        """Send the file of weights, which every executor fetches once; returns its name."""
        flat = WeightCollection.of(self.net.net, copy=None).flat.numpy()
        name = f"sparknet-{blake2b(flat.data.cast('B'), digest_size=16).hexdigest()}.caffemodel"
        send(session, name, lambda path: write_model(path, self._model()))
        return name

    def _model(self) -> Model:
        tested = self.net.tested
        params = tested.net.params
        arrays: list[list[Any]] = [
            [np.asarray(blob.data) for blob in params.get(layer.name, ())]
            for layer in tested.described.layer
        ]
        return Model(tested.described, arrays)


def check_keywords(
    outputs: Any = None,
    *,
    columns: Any = None,
    prefix: Any = "",
    best: Any = None,
    batch: Any = None,
) -> None:
    """SparkError if a keyword of `SparkModel.transform` has a wrong type."""
    if outputs is not None:
        is_list = isinstance(outputs, (list, tuple))
        if not outputs or not is_list or not all(isinstance(one, str) for one in outputs):
            raise SparkError(f"outputs is {outputs!r}: a list of the net's blobs is needed")
    named(columns)
    if not isinstance(prefix, str) or not isinstance(best, (str, NoneType)):
        raise SparkError(f"prefix and best are columns' names, not {prefix!r} and {best!r}")
    if batch is not None and (type(batch) is not int or batch < 1):
        raise SparkError(f"batch is {batch!r}: a whole number, at least 1, is needed")


def _net(
    source: Any, weights: Any, trusted: bool | None, preprocessing: Preprocessing | None
) -> Net:
    """A net from files that only Spark may be able to read.

    A caffemodel contains its own description; next to one in HDF5, which does not, lies the net.
    """
    if weights is None and isinstance(source, (str, os.PathLike)):
        if (name := _stem(source, ".h5")) is not None:
            source, weights = f"{name}.prototxt", source
        elif _stem(source, ".caffemodel") is not None or is_onnx(source):
            weights = source
    with fetched(source) as description, fetched(weights) as given:
        net = open_model(given).net if source is weights is not None else description
        made = Net(net, given, trusted=trusted, preprocessing=preprocessing)
        if description is not source or given is not weights:
            _ = made.net  # reads the copied files
    return made


def _stem(path: StrPath, suffix: str) -> str | None:
    """A path or URL without ``suffix``; None if it has another suffix."""
    text = os.fspath(path)
    return text.removesuffix(suffix) if Path(text).suffix == suffix else None


def _schema(data: DataFrame, outputs: Sequence[Output], best: str | None) -> Any:
    """The data's columns, followed by the predicted ones."""
    from pyspark.sql.types import DoubleType, StructType

    schema = StructType(list(data.schema.fields))
    more: list[tuple[str, Any]] = [(one.column, one.spark_type()) for one in outputs]
    if best is not None:
        more.append((best, DoubleType()))
    for name, kind in more:
        if name in schema.names:
            raise SparkError(f"the data has a column '{name}' already: give prefix, or drop it")
        schema = schema.add(name, kind, False)
    return schema


def _plain(schema: Any) -> Any:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(plain(one.name), one.dataType, one.nullable, one.metadata) for one in schema]
    )
