"""Row weights: the weight of each training row in the loss, as a column whose mean is 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.net.heads import find_heads
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMN = "__sparknet_weight"
"""The column that the workers read."""


@dataclass(frozen=True)
class RowWeights:
    """A column of weights, weights of classes, or both, which are multiplied."""

    column: str | None
    classes: Any
    """Label → weight, 1 for other labels; or "balanced"."""

    def __post_init__(self) -> None:
        if self.classes is not None and self.classes != "balanced":
            _check_classes(self.classes)

    @property
    def is_given(self) -> bool:
        return self.column is not None or self.classes is not None

    def added(self, data: DataFrame, label: str | None) -> DataFrame:
        """The rows with their weights in `COLUMN`, divided by their mean, as sklearn's losses are
        divided by the sum of weights."""
        from pyspark.sql import functions

        weight = functions.lit(1.0)
        if self.column is not None:
            weight = weight * self._checked(data)
        if self.classes is not None:
            if label is None:
                raise SparkError("class_weights needs a loss that reads class numbers")
            weight = weight * self._by_class(data, label)
        weighed = data.withColumn(COLUMN, weight)
        total, rows = weighed.agg(functions.sum(COLUMN), functions.count("*")).head()
        if not rows:
            return weighed
        if total is None or not isfinite(total) or total <= 0:
            raise SparkError(f"the weights of the {rows} training rows add up to {total or 0:g}")
        return weighed.withColumn(COLUMN, functions.col(COLUMN) * (rows / total))

    def _checked(self, data: DataFrame) -> Column:
        """The column's values; SparkError for one that is no weight."""
        from pyspark.sql import functions
        from pyspark.sql.types import BooleanType, NumericType

        name = str(self.column)
        if name not in data.columns:
            near = did_you_mean(name, data.columns)
            raise SparkError(f"the data has no column '{name}' for weights{near}")
        kind = data.schema[name].dataType
        if not isinstance(kind, (NumericType, BooleanType)):
            raise SparkError(
                f"column '{name}' has type {kind.simpleString()}: weights must be numbers"
            )
        values = functions.col(quoted(name)).cast("double")
        wrong = values.isNull() | functions.isnan(values) | (values < 0) | (values == float("inf"))
        odd = data.where(wrong).select(values.alias("odd")).head(1)
        if odd:
            said = "null" if odd[0].odd is None else f"{odd[0].odd:g}"
            raise SparkError(
                f"column '{name}' is {said} in a row: a weight must be finite and at least 0"
            )
        return values

    def _by_class(self, data: DataFrame, label: str) -> Column:
        from pyspark.sql import functions

        labels = functions.col(quoted(label)).cast("double")
        weights = self.classes
        if weights == "balanced":
            counts = data.groupBy(labels.alias("label")).count().collect()
            rows = sum(found["count"] for found in counts)
            weights = {found.label: rows / (len(counts) * found["count"]) for found in counts}
        chosen: Any = functions
        for one, value in weights.items():
            chosen = chosen.when(labels == float(one), float(value))
        return chosen.otherwise(1.0) if weights else functions.lit(1.0)


def without_weights(data: DataFrame) -> DataFrame:
    """Rows that all count the same, as those for validation do."""
    from pyspark.sql import functions

    return data.withColumn(COLUMN, functions.lit(1.0))


def label_column(net: Net, mapping: Mapping[str, str]) -> str | None:
    """The column of the first input that holds class numbers, or else one target a record."""
    entries = net.inputs
    for name, entry in entries.items():
        if entry.is_label:
            return mapping[name]
    for head in find_heads(net):
        if head.target in entries and head.is_single:
            return mapping[head.target]
    return None


def _check_classes(classes: Any) -> None:
    if not isinstance(classes, Mapping) or not classes:
        raise SparkError(
            f"class_weights is {classes!r}: a dict of labels and weights, or 'balanced'"
        )
    for label, weight in classes.items():
        try:
            fits = float(weight) >= 0 and isfinite(float(weight)) and isfinite(float(label))
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise SparkError(
                f"class_weights has {label!r}: {weight!r}, which is not a label with its weight"
            )
