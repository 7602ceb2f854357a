"""What `fit` is given, an RDD or a DataFrame, as one DataFrame of numbered rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.spark.address import session_of
from sparknet.spark.ingest import HELD, ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Array = np.ndarray[Any, Any]
Field = tuple[str, np.dtype[Any], tuple[int, ...]]


def frame(data: Any, entries: Sequence[str], what: str = "the data") -> DataFrame:
    """A DataFrame as it is; an RDD of tuples (in the order of ``entries``) or dicts as one."""
    if hasattr(data, "mapInArrow"):
        return data
    if hasattr(data, "mapPartitions"):
        return _from_rdd(data, entries, what)
    raise SparkError(f"{what} is a {type(data).__name__}: an RDD or a DataFrame is needed")


def mapped(
    data: DataFrame, entries: Sequence[str], columns: dict[str, str] | None, what: str = "the data"
) -> dict[str, str]:
    """Blob → column: as the user says, else the column of the same name."""
    for blob in columns or {}:
        if blob not in entries:
            raise SparkError(f"columns names blob '{blob}', but records enter at {list(entries)}")
    mapping = {entry: (columns or {}).get(entry, entry) for entry in entries}
    for blob, column in mapping.items():
        if column not in data.columns:
            raise SparkError(
                f"{what} has no column '{column}' for blob '{blob}': it has {data.columns}; "
                f"say which with columns={{'{blob}': …}}"
            )
    return mapping


def numbered(
    training: DataFrame, validation: DataFrame | None, mapping: dict[str, str], workers: int
) -> DataFrame:
    """Both sets in ``workers`` even partitions, each row with its number and which set it is of.

    The shuffle evens out skewed and empty partitions, and is what a stage that is run again
    reads its records from.
    """
    both = _marked(training, mapping, held=False)
    if validation is not None:
        both = both.unionByName(_marked(validation, mapping, held=True))
    return both.repartition(workers)


def _marked(data: DataFrame, mapping: dict[str, str], held: bool) -> DataFrame:
    from pyspark.sql import functions

    chosen = data.select(*(functions.col(f"`{name}`") for name in dict.fromkeys(mapping.values())))
    return chosen.withColumn(ROW, functions.monotonically_increasing_id()).withColumn(
        HELD, functions.lit(held)
    )


def _from_rdd(rdd: Any, entries: Sequence[str], what: str) -> DataFrame:
    from pyspark.sql.types import StructType

    session = session_of(rdd, what)
    first = rdd.take(1)
    if not first:
        raise SparkError(f"{what} is an RDD without records")
    fields = [_field(name, value) for name, value in _named(first[0], entries).items()]
    schema = StructType()
    for name, dtype, shape in fields:
        schema.add(name, _type_name(dtype, shape), nullable=False)
    rows = rdd.mapPartitions(lambda records: _rows(records, entries, fields))
    return session.createDataFrame(rows, schema, verifySchema=False)


def _named(record: Any, entries: Sequence[str]) -> dict[str, Any]:
    if isinstance(record, dict):
        return record
    if not isinstance(record, (tuple, list)) or len(record) != len(entries):
        raise SparkError(
            f"a record of an RDD is a {type(record).__name__}: a dict, or a tuple of "
            f"{len(entries)} ({', '.join(entries)}), is needed"
        )
    return dict(zip(entries, record, strict=True))


def _field(name: str, value: Any) -> Field:
    array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise SparkError(f"'{name}' of a record holds a {type(value).__name__}: no numbers")
    if array.ndim and array.dtype != np.uint8:
        return name, np.dtype(np.float32), array.shape
    return name, array.dtype, array.shape


def _type_name(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    if shape:
        return "binary"
    return "double" if dtype.kind == "f" else "long"


def _rows(records: Iterable[Any], entries: Sequence[str], fields: list[Field]) -> Iterator[Any]:
    for record in records:
        named = _named(record, entries)
        if len(named) != len(fields) or any(name not in named for name, _, _ in fields):
            raise SparkError(
                f"a record has {sorted(named)}, the first had {[f[0] for f in fields]}"
            )
        yield tuple(_value(named[name], name, dtype, shape) for name, dtype, shape in fields)


def _value(value: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return float(value) if dtype.kind == "f" else int(value)
    array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
    if array.shape != shape:
        raise SparkError(f"'{name}' of a record has shape {array.shape}, that of the first {shape}")
    return np.ascontiguousarray(array, dtype).tobytes()
