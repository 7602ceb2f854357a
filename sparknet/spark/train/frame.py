"""Converts the data of `fit`, an RDD or a DataFrame, to a DataFrame of numbered rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SettingError, SparkError
from sparknet.net.weighting import RowWeights
from sparknet.predict.input_columns import InputSpec, column_map, plain
from sparknet.predict.prediction import PATH
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.cluster.session import no_data, session_of
from sparknet.spark.predict.table import (
    bound_batches,
    check_types,
    column_name,
    column_names,
    net_columns,
    quoted,
    with_fields,
)
from sparknet.spark.train.ingest import HELD, NAMED, ROW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Array = np.ndarray[Any, Any]
PATH_TYPE = (PATH, "string")
Field = tuple[str, np.dtype[Any], tuple[int, ...]]


def frame(
    data: Any, wanted: Sequence[str], what: str = "the data", fewer: Sequence[str] = ()
) -> DataFrame:
    """Return a DataFrame with the wanted fields of structs as columns, or an RDD as one.

    Its records are tuples (in order of ``wanted``, or of ``fewer`` if they are as many), dicts or
    Rows, or the values of the only column.
    """
    if hasattr(data, "mapInArrow"):
        if data.isStreaming:
            raise SparkError(
                f"{what} is a stream, which has no end: fit its batches in foreachBatch"
            )
        return with_fields(data, wanted)
    if hasattr(data, "mapPartitions"):
        return _from_rdd(data, wanted, what, fewer)
    raise SparkError(f"{what} is {no_data(data)}")


def mapped(
    data: DataFrame, entries: Sequence[str], columns: dict[str, str] | None, what: str = "the data"
) -> dict[str, str]:
    """Blob → column: the user's, else the column of the same name; checks the types."""
    by_entry = column_map(columns)
    for blob in by_entry:
        if blob not in entries:
            near = did_you_mean(blob, entries)
            raise SparkError(
                f"columns names blob '{blob}', but records enter at {list(entries)}{near}"
            )
    by_entry = column_names(data, by_entry, entries)
    mapping = {entry: by_entry.get(entry, entry) for entry in entries}
    for blob, column in mapping.items():
        if column not in data.columns:
            raise SparkError(
                f"{what} has no column '{column}' for blob '{blob}': it has {data.columns}; "
                f"say which with columns={{'{blob}': …}}{did_you_mean(column, data.columns)}"
            )
    check_types(data, mapping.values(), what)
    return mapping


def numbered(
    training: DataFrame,
    validation: DataFrame | None,
    mapping: dict[str, str],
    workers: int | None,
    shapes: Mapping[str, InputSpec],
) -> DataFrame:
    """Return both sets in ``workers`` even partitions, each row with its number and its set.

    The shuffle evens out skewed and empty partitions, and a stage that is run again reads its
    records from it.  Where each worker reads all rows (None) the partitions stay.
    """
    from pyspark.errors import PySparkException

    bound_batches(training, mapping.values())
    has_paths = any(PATH_TYPE in data.dtypes for data in (training, validation) if data is not None)
    both = _marked(training, mapping, shapes, False, has_paths)
    if validation is not None:
        try:
            both = both.unionByName(_marked(validation, mapping, shapes, True, has_paths))
            _ = both.columns  # Spark Connect checks it only here
        except PySparkException as error:
            raise SparkError(
                f"columns {sorted(mapping.values())} of the validation data are of other types "
                f"than those of the training data: {str(error).strip().partition(chr(10))[0]}"
            ) from error
    return both if workers is None else both.repartition(workers)


def _marked(
    data: DataFrame,
    mapping: dict[str, str],
    shapes: Mapping[str, InputSpec],
    held: bool,
    named: bool,
) -> DataFrame:
    """Return the columns that the net reads, with each row's number and set, and its path if it
    has one or rows of the other set have.
    """
    from pyspark.sql import functions

    names = dict.fromkeys(mapping.values())
    selected = net_columns(data, names, mapping, shapes)
    columns = [*map(plain, names)]
    if named:
        path = functions.col(PATH) if data.columns.count(PATH) == 1 else functions.lit(None)
        selected.append(path.cast("string"))
        columns.append(NAMED)
    return (
        data.select(*selected)
        .toDF(*columns)
        .withColumn(ROW, functions.monotonically_increasing_id())
        .withColumn(HELD, functions.lit(held))
    )


def _from_rdd(rdd: Any, columns: Sequence[str], what: str, fewer: Sequence[str]) -> DataFrame:
    from pyspark.sql.types import StructType

    session = session_of(rdd, what)
    first = rdd.take(1)
    if not first:
        raise SparkError(f"{what} is an RDD without records")
    if fewer and not _has_names(first[0]):
        count = len(first[0]) if isinstance(first[0], (tuple, list)) else 1
        columns = fewer if count == len(fewer) else columns
    fields = [_field(name, value) for name, value in _values_by_name(first[0], columns).items()]
    schema = StructType()
    for name, dtype, shape in fields:
        schema.add(name, _type_name(dtype, shape), nullable=False)
    rows = rdd.mapPartitions(lambda records: _rows(records, columns, fields))
    return session.createDataFrame(rows, schema, verifySchema=False)


def _values_by_name(record: Any, wanted: Sequence[str]) -> dict[str, Any]:
    """Return the wanted values of a record, by name."""
    if _has_names(record):
        record = record if isinstance(record, dict) else record.asDict()
        return {name: record[name] for name in wanted if name in record} or record
    if isinstance(record, (np.ndarray, bytes)) and len(wanted) == 1:
        return {wanted[0]: record}
    if not isinstance(record, (tuple, list)) or len(record) != len(wanted):
        raise SparkError(
            f"a record of an RDD is a {type(record).__name__}{_length(record)}: a dict, or a tuple "
            f"of {len(wanted)} ({', '.join(wanted)}), is needed"
        )
    return dict(zip(wanted, record, strict=True))


def _has_names(record: Any) -> bool:
    return isinstance(record, dict) or hasattr(record, "__fields__")  # a Row


def _length(record: Any) -> str:
    return f" of {len(record)}" if isinstance(record, (tuple, list)) else ""


def _field(name: str, value: Any) -> Field:
    array = _numbers(value, name)
    if array.ndim and array.dtype != np.uint8:
        return name, np.dtype(np.float32), array.shape
    return name, array.dtype, array.shape


def _type_name(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    if shape:
        return "binary"
    return "double" if dtype.kind == "f" else "long"


def _rows(records: Iterable[Any], wanted: Sequence[str], fields: list[Field]) -> Iterator[Any]:
    for record in records:
        row = _values_by_name(record, wanted)
        if len(row) != len(fields) or any(name not in row for name, _, _ in fields):
            raise SparkError(f"a record has {sorted(row)}, the first had {[f[0] for f in fields]}")
        yield tuple(_value(row[name], name, dtype, shape) for name, dtype, shape in fields)


def _value(value: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    array = _numbers(value, name)
    if array.shape != shape:
        raise SparkError(f"'{name}' of a record has shape {array.shape}, that of the first {shape}")
    if shape:
        return np.ascontiguousarray(array, dtype).tobytes()
    if dtype.kind == "f":
        return float(array)
    if array.dtype.kind == "f" and not float(array).is_integer():
        raise SparkError(f"'{name}' of a record is {array}, that of the first was a whole number")
    return int(array)


def _numbers(value: Any, name: str) -> Array:
    try:
        array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise SparkError(f"'{name}' of a record: {error}") from error
    if array.dtype.kind not in "biuf":
        raise SparkError(f"'{name}' of a record holds a {type(value).__name__}, not numbers")
    return array


COLUMN = "__sparknet_weight"
"""The column that the workers read."""


class FrameWeights(RowWeights):
    """The weights of a DataFrame's rows."""

    @property
    def columns(self) -> list[str]:
        """The columns that they are read from."""
        return [] if self.column is None else [self.column]

    def added_to(self, data: DataFrame, label: str | None) -> DataFrame:
        """Return the rows with their weights in `COLUMN`, divided by their mean, as sklearn's
        losses are divided by the sum of weights.
        """
        from pyspark.sql import functions

        weight = functions.lit(1.0)
        if self.column is not None:
            weight = weight * self._checked(data)
        if self.classes is not None:
            if label is None:
                raise SettingError("class_weights needs a loss that reads class numbers")
            weight = weight * self._by_class(data, label)
        weighed = data.withColumn(COLUMN, weight)
        total, rows = weighed.agg(functions.sum(COLUMN), functions.count("*")).head()
        if not rows:
            return weighed
        if total is None or not isfinite(total) or total <= 0:
            raise SparkError(f"the weights of the {rows} training rows add up to {total or 0:g}")
        return weighed.withColumn(COLUMN, functions.col(COLUMN) * (rows / total))

    def _checked(self, data: DataFrame) -> Column:
        """Return the column's values; SparkError for one that is no weight."""
        from pyspark.sql import functions
        from pyspark.sql.types import BooleanType, NumericType

        name = column_name(data, str(self.column))
        if name is None:
            near = did_you_mean(str(self.column), data.columns)
            raise SparkError(f"the data has no column '{self.column}' for weights{near}")
        kind = data.schema[name].dataType
        if not isinstance(kind, (NumericType, BooleanType)):
            raise SparkError(
                f"column '{name}' has type {kind.simpleString()}: weights must be numbers"
            )
        values = functions.col(quoted(name)).cast("double")
        wrong = values.isNull() | functions.isnan(values) | (values < 0) | (values == float("inf"))
        odd = data.where(wrong).select(values.alias("odd")).head(1)
        if odd:
            value = "null" if odd[0].odd is None else f"{odd[0].odd:g}"
            raise SparkError(
                f"column '{name}' is {value} in a row: a weight must be finite and at least 0"
            )
        return values

    def _by_class(self, data: DataFrame, label: str) -> Column:
        from pyspark.sql import functions

        labels = functions.col(quoted(label)).cast("double")
        counts = data.groupBy(labels.alias("label")).count().collect()
        weights = self.by_label(
            {one.label: one["count"] for one in counts if one.label is not None}
        )
        cases: Any = functions
        for one, value in weights.items():
            cases = cases.when(labels == one, value)
        return cases.otherwise(1.0) if weights else functions.lit(1.0)


def without_weights(data: DataFrame) -> DataFrame:
    """Rows that all count the same, as those for validation do."""
    from pyspark.sql import functions

    return data.withColumn(COLUMN, functions.lit(1.0))
