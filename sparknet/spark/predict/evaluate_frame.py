"""evaluate: how well a net predicts the rows of a DataFrame, counted where the rows lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from sparknet.net.heads import Head
from sparknet.predict.input_columns import plain
from sparknet.predict.metrics import (
    SCHEMA,
    Evaluation,
    add_up,
    count_rows,
    head_columns,
)
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.predict.table import column_name, quoted, with_classes, with_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sparknet.spark.predict.model import SparkModel

_PREFIX = "__sparknet/"


def evaluate(
    model: SparkModel,
    data: DataFrame,
    label: str | None,
    columns: Mapping[str, str],
    heads: Sequence[Head],
    batch: int | None,
    invalid: Literal["raise", "drop"],
) -> Evaluation:
    """Return the evaluation of the first head, with the others: `SparkModel.evaluate`."""
    all_columns = {**model.columns, **columns}
    data = with_fields(data, [label or "", *all_columns.values()])
    judged = head_columns(
        *(heads, label, all_columns, partial(column_name, data)),
        model.predictor.truth_shapes(),
        _PREFIX,
    )
    if model.labels:
        data, _ = with_classes(data, [one.truth for one in judged], model.labels, "data")
    inputs = model.predictor.input_names
    drops = invalid == "drop"
    predicted = model.transform(
        data,
        list(dict.fromkeys(one.head.scores or one.head.blob for one in judged)),
        columns={name: column for name, column in columns.items() if name in inputs},
        prefix=_PREFIX,
        batch=batch,
        invalid="null" if drops else "raise",
    )
    needed = dict.fromkeys(name for one in judged for name in (one.truth, one.scores))
    selected = predicted.select(*map(quoted, needed)).toDF(*map(plain, needed))
    counted = by_value(partial(count_rows, judged=judged, drops=drops))
    rows = selected.mapInArrow(counted, SCHEMA).collect()
    return add_up(judged, rows)
