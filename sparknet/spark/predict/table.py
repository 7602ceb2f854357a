"""FrameTable: the columns of a DataFrame by name and type, before any job reads them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError, outside
from sparknet.loaders.records import match_classes
from sparknet.predict.local_rows import check_features
from sparknet.predict.module_predictor import records_of
from sparknet.predict.prediction import PATH
from sparknet.predict.request import Request
from sparknet.predict.spark_structs import IMAGE, VECTOR
from sparknet.proto.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LOOKED_AT = 32
"""Rows that say what a module is given."""
_BYTES, _ROWS = (f"spark.sql.execution.arrow.max{one}PerBatch" for one in ("Bytes", "Records"))
_COLUMNAR = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
"""Whether PySpark 4.3 makes batches of columnar files' rows with no bound of bytes."""
_MANY, _FEW = "10000", "128"
"""Rows of an Arrow batch: Spark's default, and as many as are below 2 GiB if a row has 16 MB."""
_SHORT = 4096
"""A vector of fewer values travels as an array."""
SHAPE = "sparknet_shape"
"""The key of a column's metadata for the shape of its raw records."""
_MOST_CLASSES = 10_000
"""Distinct values of a column that names classes."""
CLASSES = "sparknet_classes"
"""The key of a column's metadata for the names of the classes that its numbers stand for."""


def quoted(name: str) -> str:
    """Return a column's name for Spark's functions, which take a dot for a field access."""
    return f"`{name.replace('`', '``')}`"


def column_name(data: DataFrame, name: str) -> str | None:
    """Return the column that Spark takes a name for, whose case may differ; None if none is."""
    same = _of_name(data, data.schema.fields, name)
    return same[0].name if same else None


def column_names(
    data: DataFrame, columns: Mapping[str, str], names: Iterable[str] = ()
) -> dict[str, str]:
    """Return blob → column as the data writes it, also for ``names`` that differ in case alone."""
    names_of_columns = dict(columns)
    for name in (*columns, *names):
        column = names_of_columns.get(name, name)
        match = column_name(data, column)
        if match not in (None, column):
            names_of_columns[name] = str(match)
    return names_of_columns


def with_fields(data: DataFrame, names: Iterable[str]) -> DataFrame:
    """Add a column for each name ``struct.field`` that is a field of a struct and no column."""
    from pyspark.sql.functions import col

    for name in dict.fromkeys(names):
        if "." not in name or column_name(data, name) is not None:
            continue
        fields, path = data.schema.fields, []
        for step in name.split("."):
            same = _of_name(data, fields, step)
            if len(same) != 1:
                break
            path.append(quoted(same[0].name))
            fields = getattr(same[0].dataType, "fields", [])
        else:
            data = data.withColumn(name, col(".".join(path)))
    return data


def with_features(data: DataFrame, features: Mapping[str, Sequence[str]]) -> DataFrame:
    """Add a column for each input whose record is several columns of numbers."""
    from pyspark.sql.functions import array, col
    from pyspark.sql.types import BooleanType, NumericType

    for name, parts in features.items():
        if column_name(data, name) is None:
            check_features(name, parts, data.columns)
            for part in parts:
                kind = check_unique(data, part, "the data")
                if not isinstance(kind, (BooleanType, NumericType)):
                    raise SparkError(
                        f"column '{part}' is of type {kind.simpleString()}, and a feature is one "
                        "number: cast it, or number its values by StringIndexer"
                    )
            record = array(*(col(quoted(part)).cast("float") for part in parts))
            data = data.withColumn(name, record)
    return data


def with_class_numbers(data: DataFrame, label: str) -> DataFrame:
    """Number a column of the names of classes, in the order of the names, which it then carries."""
    from pyspark.sql.functions import array, array_position, col, lit
    from pyspark.sql.types import StringType

    if column_name(data, label) is None:  # which `mapped` reports
        return data
    if not isinstance(check_unique(data, label, "the data"), StringType):
        return data
    value = col(quoted(label))
    rows = data.select(value).where(value.isNotNull()).distinct().limit(_MOST_CLASSES + 1).collect()
    if len(rows) > _MOST_CLASSES:
        raise SparkError(f"column '{label}' has over {_MOST_CLASSES} values: it names no classes")
    names = sorted(row[0] for row in rows)
    number = array_position(array(*map(lit, names)), value) - 1
    return data.withColumn(label, number).withMetadata(label, {CLASSES: names})


def _of_name(data: DataFrame, fields: Sequence[Any], name: str) -> list[Any]:
    """Return the fields that Spark may take a name for; the exact one first."""
    alike = [field for field in fields if field.name.lower() == name.lower()]
    exact = [field for field in alike if field.name == name]
    if len(alike) == len(exact):
        return exact
    is_exact = str(data.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return exact if is_exact else sorted(alike, key=lambda field: bool(field.name != name))


def check_unique(data: DataFrame, column: str, what: str) -> Any:
    """Return the type of a column; raise SparkError if Spark takes several for it."""
    same = _of_name(data, data.schema.fields, column)
    if len(same) > 1:
        raise SparkError(f"{what} has {len(same)} columns called '{column}': rename or drop")
    return same[0].dataType


def bound_batches(data: DataFrame, columns: Iterable[str]) -> None:
    """Bound the rows of Arrow batches of bytes or images, if this Spark has no bound of bytes.

    Before PySpark 4.1 one batch has 10,000 rows: over 2 GiB of photographs end in Java's
    OversizedAllocationException.
    """
    from pyspark.sql.types import BinaryType, StructType

    conf, names = data.sparkSession.conf, set(columns)
    kinds = [field.dataType for field in data.schema.fields if field.name in names]
    if not any(isinstance(kind, (BinaryType, StructType)) for kind in kinds):
        return
    if conf.isModifiable(_COLUMNAR):
        conf.set(_COLUMNAR, "false")
    if conf.isModifiable(_BYTES) or conf.get(_ROWS) != _MANY:
        return
    conf.set(_ROWS, _FEW)
    warnings.warn(
        f"this Spark does not bound the bytes of Arrow batches: {_ROWS} is {_FEW} in this session "
        f"from now on, where it was {_MANY}; set it to less if {_FEW} rows are over 2 GiB",
        stacklevel=outside(),
    )


def check_types(data: DataFrame, columns: Iterable[str], what: str) -> None:
    """SparkError if a column's type is none that a net takes; no job is needed for it."""
    for column in columns:
        type_of_column = check_unique(data, column, what)
        if not _is_taken(type_of_column):
            kind = type_of_column.simpleString()
            way = (
                "cast it, or number its values by StringIndexer" if kind == "string" else "cast it"
            )
            raise SparkError(
                f"column '{column}' of {what} is of type {kind}, and a net takes numbers, arrays "
                f"of them, bytes, images and vectors: {way}"
            )


def check_texts(data: DataFrame, columns: Iterable[str], what: str) -> None:
    """SparkError if a column holds no strings; no job is needed for it."""
    for column in columns:
        kind = check_unique(data, column, what).simpleString()
        if kind != "string":
            raise SparkError(
                f"column '{column}' of {what} is of type {kind}, and a tokenizer takes strings: "
                "cast it"
            )


def record_shapes(data: DataFrame | None, mapping: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """Return input → the shape of raw records, where columns' metadata say it (`read_records`)."""
    shapes = {}
    for field in () if data is None else data.schema.fields:
        shape = (field.metadata or {}).get(SHAPE)
        if isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape):
            shapes[field.name] = tuple(shape)
    return {name: shapes[column] for name, column in mapping.items() if column in shapes}


def with_classes(
    data: DataFrame, columns: Iterable[str], labels: Sequence[str], what: str, learns: bool = False
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return rows with their classes numbered by a net's labels, where a column's metadata name
    them, and the labels from then on."""
    from pyspark.sql import functions

    numbered, names = data, tuple(labels)
    for field in data.schema.fields:
        own = (field.metadata or {}).get(CLASSES, ())
        if not own or field.name not in columns:
            continue
        numbers, names = match_classes(own, names, what, learns)
        if numbers is not None:
            value = functions.col(quoted(field.name))
            by_number = functions.array(*map(functions.lit, numbers))
            changed = functions.element_at(by_number, value.cast("int") + 1).cast(field.dataType)
            is_class = value.between(0, len(numbers) - 1)
            numbered = numbered.withColumn(
                field.name, functions.when(is_class, changed).otherwise(value)
            )
    return numbered, names


def net_columns(
    data: DataFrame, names: Iterable[str], mapping: Mapping[str, str], shapes: Mapping[str, Any]
) -> list[Column]:
    """Return columns for Arrow, in which short vectors are arrays: that takes half of the time.

    Long vectors stay, as they may be sparse.
    """
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql.functions import col, when

    sizes = {
        column: prod(size or 0 for size in shapes[one].shape)
        for one, column in mapping.items()
        if one in shapes
    }
    vectors = {
        field.name.lower() for field in data.schema if field.dataType.simpleString() == "vector"
    }
    columns = []
    for name in names:
        value = col(quoted(name))
        if name.lower() in vectors and sizes.get(name, _SHORT) < _SHORT:
            value = when(value.isNotNull(), vector_to_array(value))
        columns.append(value)
    return columns


def _is_taken(kind: Any) -> bool:
    from pyspark.sql import types

    if isinstance(kind, types.UserDefinedType):
        return _is_taken(kind.sqlType())
    if isinstance(kind, types.StructType):
        names = set(kind.names)
        return names >= IMAGE or names >= VECTOR
    if isinstance(kind, types.BinaryType):
        return True
    while isinstance(kind, types.ArrayType):
        kind = kind.elementType
    return isinstance(kind, (types.NumericType, types.BooleanType))


class FrameTable:
    """A DataFrame as `sparknet.predict` knows it."""

    def __init__(self, data: DataFrame, what: str = "the data") -> None:
        self._data, self._what = data, what

    @property
    def columns(self) -> list[str]:
        return list(self._data.columns)

    def names(self, columns: Mapping[str, str], inputs: Iterable[str] = ()) -> dict[str, str]:
        return column_names(self._data, columns, inputs)

    def check(self, columns: Iterable[str], texts: bool = False) -> None:
        (check_texts if texts else check_types)(self._data, columns, self._what)

    def record_shapes(self, mapping: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
        return record_shapes(self._data, mapping)

    def is_picture(self, column: str) -> bool:
        from pyspark.sql.types import BinaryType, StructType

        kind = self._data.schema[column].dataType
        return isinstance(kind, BinaryType) or (
            isinstance(kind, StructType) and {"height", "width"} <= set(kind.names)
        )

    def key(self, request: Request) -> str | None:
        data = self._data
        if request.key is not None:
            if (name := column_name(data, request.key)) is None:
                near = did_you_mean(request.key, data.columns)
                raise SparkError(f"the data has no column '{request.key}' to name rows by{near}")
            check_unique(data, name, self._what)
            return name
        paths = [kind for name, kind in data.dtypes if name.lower() == PATH]
        is_named = paths == ["string"] and PATH in data.columns and request.invalid != "drop"
        return PATH if is_named else None

    def first_rows(
        self, mapping: Mapping[str, str], sizes: Mapping[str, tuple[int, ...]]
    ) -> dict[str, Any]:
        """Return a few records by argument; one job of few rows."""
        columns = map(quoted, dict.fromkeys(mapping.values()))
        rows = self._data.select(*columns).limit(_LOOKED_AT).collect()
        return records_of(rows, mapping, sizes, self._what)
