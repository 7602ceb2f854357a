"""Row weights: the weight of each training row in the loss, as a column whose mean is 1."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from sparknet.errors import SettingError, SparkError
from sparknet.net.weighting import RowWeights
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.column_types import column_name, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMN = "__sparknet_weight"
"""The column that the workers read."""


class FrameWeights(RowWeights):
    """The weights of a DataFrame's rows."""

    def added_to(self, data: DataFrame, label: str | None) -> DataFrame:
        """The rows with their weights in `COLUMN`, divided by their mean, as sklearn's losses are
        divided by the sum of weights."""
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
        """The column's values; SparkError for one that is no weight."""
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
            said = "null" if odd[0].odd is None else f"{odd[0].odd:g}"
            raise SparkError(
                f"column '{name}' is {said} in a row: a weight must be finite and at least 0"
            )
        return values

    def _by_class(self, data: DataFrame, label: str) -> Column:
        from pyspark.sql import functions

        labels = functions.col(quoted(label)).cast("double")
        counts = data.groupBy(labels.alias("label")).count().collect()
        weights = self.by_label(
            {one.label: one["count"] for one in counts if one.label is not None}
        )
        chosen: Any = functions
        for one, value in weights.items():
            chosen = chosen.when(labels == one, value)
        return chosen.otherwise(1.0) if weights else functions.lit(1.0)


def without_weights(data: DataFrame) -> DataFrame:
    """Rows that all count the same, as those for validation do."""
    from pyspark.sql import functions

    return data.withColumn(COLUMN, functions.lit(1.0))
