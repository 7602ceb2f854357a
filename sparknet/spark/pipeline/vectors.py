"""Columns as pyspark.ml has them, made of the columns of blobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.predict.stage import Made
from sparknet.spark.predict.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from sparknet.predict.prediction import Invalid
    from sparknet.spark.predict.model import SparkModel

Make = Callable[[str, Any], "Column"]


PREFIX = "__sparknet/"
"""What the names of blobs' columns begin with on their way."""
_WHY = PREFIX + "why"


def with_blobs(
    model: SparkModel,
    data: DataFrame,
    blobs: list[str],
    columns: Mapping[str, str],
    batch: int | None,
    invalid: Invalid,
) -> DataFrame:
    """Return the data with blobs of the net as columns, under `PREFIX` and their names."""
    if invalid != "drop":
        return model.transform(
            data, blobs, columns=dict(columns), prefix=PREFIX, batch=batch, invalid=invalid
        )
    # So no vector goes through Python, as all columns do where `transform` drops rows.
    frame = model.transform(
        data, blobs, columns=dict(columns), prefix=PREFIX, batch=batch, invalid="null", reason=_WHY
    )
    from pyspark.sql.functions import col

    return frame.where(col(quoted(_WHY)).isNull()).drop(_WHY)


def added(columns: dict[str, Column], data: DataFrame, name: str, column: Column) -> None:
    """Add a column; SparkError if there is one of that name."""
    if name in data.columns or name in columns:
        raise SparkError(f"the data has a column '{name}' already: give another name, or drop it")
    columns[name] = column


def array(name: str, kind: Any) -> Column:
    """Return the numbers of a blob's column, which is one number or an array."""
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType

    column = functions.col(quoted(name))
    return column if isinstance(kind, ArrayType) else functions.array(column)


def vector(name: str, kind: Any) -> Column:
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions

    numbers = array_to_vector(array(name, kind))
    return functions.when(functions.col(quoted(name)).isNotNull(), numbers)


def _number(name: str, kind: Any) -> Column:
    from pyspark.sql import functions

    return functions.element_at(array(name, kind), 1).cast("double")


def _class(name: str, kind: Any) -> Column:
    """Return the place of the largest score, a double."""
    from pyspark.sql import functions

    scores = array(name, kind)
    # PySpark 3.5's array_position takes no column as its value.
    place = functions.call_function("array_position", scores, functions.array_max(scores))
    return (place - 1).cast("double")


def _classes(name: str, kind: Any) -> Column:
    """Return the classes of the places of a record."""
    return array(name, kind).cast("array<double>")


def _labels(name: str, kind: Any) -> Column:
    """Return the numbers of the labels whose scores are above 0, as
    MultilabelClassificationEvaluator takes them.
    """
    from pyspark.sql import functions

    def number(score: Column, place: Column) -> Any:
        return functions.when(score > 0, place.cast("double"))

    numbered = functions.transform(array(name, kind), number)
    return functions.filter(numbered, lambda one: one.isNotNull())


MAKERS: dict[Made, Make] = {
    "vector": vector,
    "number": _number,
    "class": _class,
    "classes": _classes,
    "labels": _labels,
}
"""How a blob's column becomes a column of the stage."""
