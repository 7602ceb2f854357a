"""transformed: a DataFrame with a prediction's columns, as Spark's optimizer can follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net.fed import FedNet
from sparknet.predict.columns import Wanted, plain
from sparknet.predict.detections import BoxFrames
from sparknet.predict.outputs import Output
from sparknet.predict.prediction import PATH, Prediction
from sparknet.predict.request import Ask
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.cluster.background_job import is_classic
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.cluster.session import no_data, session_of
from sparknet.spark.column_function import as_vector, spark_function, spark_type
from sparknet.spark.column_types import (
    bound_batches,
    check_unique,
    column_name,
    quoted,
    with_fields,
)
from sparknet.spark.predict_task import ModelTask, valid_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_session(data: Any) -> SparkSession:
    """The session of a DataFrame to predict; SparkError if it cannot be."""
    if not hasattr(data, "mapInArrow"):
        raise SparkError(f"the data is {no_data(data, 'a DataFrame')}")
    session = session_of(data, "the data")
    if data.isStreaming and not is_classic(session):
        raise SparkError(
            "under Spark Connect a stream's tasks get no files, so no weights: predict streams in "
            "a classic session"
        )
    return session


def transformed(
    data: DataFrame, read: Iterable[str], predict: Callable[[DataFrame], ModelTask]
) -> DataFrame:
    """Return the data with the columns of a prediction.

    ``read`` names columns that may be fields of structs: ``predict`` has them as columns.  Only
    the columns that the net reads go through Python, unless rows are dropped.
    """
    rows = with_fields(data, read)
    task = predict(rows)
    bound_batches(rows, task.prediction.columns)
    return _added(rows, task).drop(*rows.columns[len(data.columns) :])


def _added(data: DataFrame, task: ModelTask) -> DataFrame:
    given = task.prediction
    names = [output.column for output in given.outputs]
    names += [] if given.reason is None else [given.reason]
    for number, name in enumerate(names):
        if name in data.columns or name in names[:number]:
            raise SparkError(f"the data has a column '{name}' already: give prefix, or drop it")
    if given.invalid == "drop":
        return _mapped(data, task)
    from pyspark.sql.functions import array, col, inline

    # Spark computes a function of a filter's columns twice, once for the filter, unless a
    # generator makes them; it knows which rows and columns a generator leaves as they are.
    places = [f"sparknet_{number}" for number in range(len(names))]
    made = spark_function(task, places)(*(col(quoted(name)) for name in given.columns))
    wide = data.select("*", inline(array(made)).alias(*places))
    return _finished(wide.toDF(*data.columns, *names), given)


def _finished(made: DataFrame, given: Prediction) -> DataFrame:
    """The columns as they are wanted: vectors, where those are asked for."""
    from pyspark.sql.functions import col

    for output in given.outputs:
        if output.is_vector:
            made = made.withColumn(output.column, as_vector(col(quoted(output.column))))
    return made


def _mapped(data: DataFrame, task: ModelTask) -> DataFrame:
    """All columns through Python, which leaves rows out."""
    from pyspark.sql.types import StructField, StructType

    given = task.prediction
    read = set(given.columns)  # each of them once; others may have one name
    labels = [
        plain(name) if name in read else f"sparknet_row_{number}"
        for number, name in enumerate(data.columns)
    ]
    rows = data.toDF(*labels)
    names = [f"sparknet_{number}" for number in range(len(given.outputs))]
    fields = [
        StructField(name, spark_type(output), True)
        for name, output in zip(names, given.outputs, strict=True)
    ]
    schema = StructType([*rows.schema.fields, *fields])
    made = rows.mapInArrow(by_value(partial(valid_rows, task=task)), schema)
    return _finished(made.toDF(*data.columns, *(o.column for o in given.outputs)), given)


def key_of(ask: Ask, data: DataFrame | None) -> str | None:
    """The column that names a row in messages."""
    if data is None:
        return None
    if ask.key is not None:
        if (name := column_name(data, ask.key)) is None:
            near = did_you_mean(ask.key, data.columns)
            raise SparkError(f"the data has no column '{ask.key}' to name rows by{near}")
        check_unique(data, name, "the data")
        return name
    paths = [kind for name, kind in data.dtypes if name.lower() == PATH]
    is_named = paths == ["string"] and PATH in data.columns and ask.invalid != "drop"
    return PATH if is_named else None


def pictures_of(
    tested: FedNet,
    mapping: Mapping[str, str],
    outputs: Sequence[Output],
    data: DataFrame | None,
    shapes: Mapping[str, Wanted],
) -> BoxFrames | None:
    """The pictures in whose pixels boxes are told; None where they are told from 0 to 1.

    They are those of the net's only input of channels x height x width, if its column holds
    pictures or bytes.
    """
    if not any(output.is_list for output in outputs):
        return None
    images = [one for one in tested.entries if one.name in mapping and len(one.record) == 3]
    if len(images) != 1:
        return None
    column = mapping[images[0].name]
    if data is not None and not is_picture(data.schema[column].dataType):
        return None
    return BoxFrames(
        column,
        images[0].record,
        images[0].pictures or Preprocessing(),
        shapes[images[0].name].kinds,
    )


def is_picture(kind: Any) -> bool:
    from pyspark.sql.types import BinaryType, StructType

    return isinstance(kind, BinaryType) or (
        isinstance(kind, StructType) and {"height", "width"} <= set(kind.names)
    )
