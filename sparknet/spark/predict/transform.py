"""A model's columns added to a DataFrame, and a model as a function of columns.

Spark's optimizer knows both; only the columns that the model reads travel through Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.predict.input_columns import plain
from sparknet.predict.output_columns import Output
from sparknet.predict.prediction import Prediction
from sparknet.predict.request import Request
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.cluster.session import no_data, running_session, session_of
from sparknet.spark.predict.table import (
    bound_batches,
    net_columns,
    quoted,
    with_features,
    with_fields,
)
from sparknet.spark.predict.task import ModelTask, frames, structs, valid_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def frame_session(data: Any) -> SparkSession:
    """Return the session of a DataFrame to predict; SparkError if it cannot be."""
    if not hasattr(data, "mapInArrow"):
        raise SparkError(f"the data is {no_data(data, 'a DataFrame')}")
    return session_of(data, "the data")


def transformed(
    data: DataFrame,
    read: Iterable[str],
    features: Mapping[str, Sequence[str]],
    predict: Callable[[DataFrame], ModelTask],
) -> DataFrame:
    """Return the data with the columns of a prediction.

    ``read`` names columns that may be fields of structs, ``features`` inputs that are several
    columns of numbers: ``predict`` has them as columns.  Only the columns that the net reads go
    through Python, unless rows are dropped.
    """
    rows = with_features(with_fields(data, read), features)
    task = predict(rows)
    bound_batches(rows, task.prediction.columns)
    return _added(rows, task).drop(*rows.columns[len(data.columns) :])


def _added(data: DataFrame, task: ModelTask) -> DataFrame:
    prediction = task.prediction
    names = [output.column for output in prediction.outputs]
    names += [] if prediction.reason is None else [prediction.reason]
    for number, name in enumerate(names):
        if name in data.columns or name in names[:number]:
            raise SparkError(f"the data has a column '{name}' already: give prefix, or drop it")
    if prediction.invalid == "drop":
        return _mapped(data, task)
    from pyspark.sql.functions import array, inline

    # Spark computes a function of a filter's columns twice, once for the filter, unless a
    # generator makes them; it knows which rows and columns a generator leaves as they are.
    places = [f"sparknet_{number}" for number in range(len(names))]
    inputs = net_columns(data, prediction.columns, prediction.mapping, prediction.shapes)
    columns = spark_function(task, places)(*inputs)
    wide = data.select("*", inline(array(columns)).alias(*places))
    return _finished(wide.toDF(*data.columns, *names), prediction)


def _finished(data: DataFrame, given: Prediction) -> DataFrame:
    """Return the columns as they are wanted: vectors, where those are asked for."""
    from pyspark.sql.functions import col

    for output in given.outputs:
        if output.is_vector:
            data = data.withColumn(output.column, as_vector(col(quoted(output.column))))
    return data


def _mapped(data: DataFrame, task: ModelTask) -> DataFrame:
    """Return all columns through Python, which leaves rows out."""
    from pyspark.sql.types import StructField, StructType

    prediction = task.prediction
    names_read = set(prediction.columns)  # each of them once; others may have one name
    labels = [
        plain(name) if name in names_read else f"sparknet_row_{number}"
        for number, name in enumerate(data.columns)
    ]
    rows = data.toDF(*labels)
    names = [f"sparknet_{number}" for number in range(len(prediction.outputs))]
    fields = [
        StructField(name, spark_type(output), True)
        for name, output in zip(names, prediction.outputs, strict=True)
    ]
    schema = StructType([*rows.schema.fields, *fields])
    frame = rows.mapInArrow(by_value(partial(valid_rows, task=task)), schema)
    return _finished(frame.toDF(*data.columns, *(o.column for o in prediction.outputs)), prediction)


# -- a model as a function of columns ---------------------------------------------------------


class ColumnFunction:
    """A net as a function of columns, of DataFrames of the session that runs."""

    def __init__(
        self,
        request: Request,
        outputs: Sequence[Output],
        columns: Mapping[str, str],
        prediction: Callable[[SparkSession, Request], ModelTask],
    ) -> None:
        if request.vectors and (request.reason is not None or len(outputs) > 1):
            raise SparkError("a column function makes a vector of one output, without a reason")
        if (
            request.prefix
            or request.key is not None
            or request.invalid == "drop"
            or request.best is not None
        ):
            raise SparkError("a column function has no prefix, key, best or invalid='drop'")
        self._request, self._outputs, self._prediction = request, outputs, prediction
        self._columns = list(columns.items())

    def __call__(self, *columns: Column | str) -> Column:
        """Return the column that the net makes of these; of the model's own where none are
        given.
        """
        from pyspark.sql.functions import col

        inputs = [name for name, _ in self._columns]
        if columns and len(columns) != len(inputs):
            raise SparkError(f"{len(columns)} columns are given for the net's inputs {inputs}")
        inputs_of_call = columns or [col(f"`{name}`") for _, name in self._columns]
        column = self._function(_session())(*inputs_of_call)
        return as_vector(column) if self._outputs[0].is_vector else column

    def register(self, session: SparkSession, name: str) -> None:
        if any(output.is_vector for output in self._outputs):
            raise SparkError("SQL cannot make vectors: register the function without vectors=True")
        session.udf.register(name, self._function(session))

    def _function(self, session: SparkSession) -> Any:
        task = self._prediction(session, self._request)
        apart = {name: name for name in task.prediction.mapping}
        names = [output.column for output in self._outputs]
        names += [] if self._request.reason is None else [self._request.reason]
        task = replace(task, prediction=replace(task.prediction, mapping=apart))
        return spark_function(task, names if len(names) > 1 else [])


def spark_function(task: ModelTask, names: Sequence[str]) -> Any:
    """Spark's function of the columns that a prediction reads.

    It makes a struct of the outputs under these names; without names the only output itself.
    Arrow's arrays are handed over as they are from PySpark 4.1 on, through pandas before.
    """
    from pyspark.sql import functions

    kind = _type(task.prediction, names)
    if not hasattr(functions, "arrow_udf"):
        work = by_value(partial(frames, task=task, names=tuple(names)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the missing type hints
            return functions.pandas_udf(work, kind, functions.PandasUDFType.SCALAR_ITER)
    work = by_value(partial(structs, task=task, names=tuple(names)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return functions.arrow_udf(work, kind, functions.ArrowUDFType.SCALAR_ITER)


def as_vector(made: Column) -> Column:
    """Vectors of pyspark.ml of a column of arrays; nulls stay null."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql.functions import when

    return when(made.isNotNull(), array_to_vector(made))


def _session() -> SparkSession:
    session = running_session()
    if session is None:
        raise SparkError("a column function needs a Spark session, and none runs: start one first")
    return session


def spark_type(output: Output) -> Any:
    """Return Spark's type of an output's column."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(output.arrow_type())


def _type(given: Prediction, names: Sequence[str]) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    kinds = [spark_type(output) for output in given.outputs]
    if given.reason is not None:
        kinds.append(StringType())
    if not names:
        return kinds[0]
    return StructType(
        [StructField(name, kind, True) for name, kind in zip(names, kinds, strict=True)]
    )
