"""evaluate: how well a net predicts the rows of a DataFrame, counted where the rows lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import SparkError
from sparknet.net.heads import Head, find_heads
from sparknet.predict.columns import plain
from sparknet.predict.evaluation import (
    SCHEMA,
    Evaluation,
    HeadColumns,
    add_up,
    count_rows,
    truth_shape,
)
from sparknet.predict.texts import EMBEDDINGS
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.column_types import column_name, quoted, with_classes, with_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sparknet.spark.model import SparkModel

Array = np.ndarray[Any, Any]
Shape = tuple[int | None, ...]

INVALID = ("raise", "drop")
_PREFIX = "__sparknet/"


def evaluate(
    model: SparkModel,
    data: DataFrame,
    label: str | None,
    columns: Mapping[str, str],
    heads: Sequence[Head] | None,
    batch: int | None,
    invalid: Literal["raise", "drop"],
) -> Evaluation:
    """The evaluation of the first head, with those of the others: `SparkModel.evaluate`."""
    if invalid not in INVALID:
        raise SparkError(f"invalid is {invalid!r}: it is one of {', '.join(INVALID)}")
    net, drops = model.net, invalid == "drop"
    data = with_fields(data, [label or "", *{**model.columns, **columns}.values()])
    judged = _judged(model, data, label, {**model.columns, **columns}, heads)
    data, _ = with_classes(data, [one.truth for one in judged], model.labels, "data")
    inputs = {entry.name for entry in net.tested.entries}
    mapping = {name: column for name, column in columns.items() if name in inputs}
    return _compare(model.transform, data, judged, mapping, batch, drops)


def evaluated(
    transform: Callable[..., DataFrame],
    data: DataFrame,
    head: Head,
    label: str,
    columns: Mapping[str, str],
    batch: int | None,
    invalid: str,
) -> Evaluation:
    """The evaluation of one output of a module, which ``transform`` computes."""
    if invalid not in INVALID:
        raise SparkError(f"invalid is {invalid!r}: it is one of {', '.join(INVALID)}")
    data = with_fields(data, [label])
    truth = column_name(data, label)
    if truth is None:
        raise SparkError(
            f"the data has no column '{label}' to compare '{head.blob}' with: say which with label="
        )
    judged = [HeadColumns(head, _PREFIX + head.blob, truth, truth_shape(head, {}))]
    return _compare(transform, data, judged, columns, batch, invalid == "drop")


def _compare(
    transform: Callable[..., DataFrame],
    data: DataFrame,
    judged: Sequence[HeadColumns],
    columns: Mapping[str, str],
    batch: int | None,
    drops: bool,
) -> Evaluation:
    predicted = transform(
        data,
        list(dict.fromkeys(one.head.scores or one.head.blob for one in judged)),
        columns=dict(columns),
        prefix=_PREFIX,
        batch=batch,
        invalid="null" if drops else "raise",
    )
    needed = dict.fromkeys(name for one in judged for name in (one.truth, one.scores))
    chosen = predicted.select(*map(quoted, needed)).toDF(*map(plain, needed))
    counted = by_value(partial(count_rows, judged=judged, drops=drops))
    rows = chosen.mapInArrow(counted, SCHEMA).collect()
    return add_up(judged, rows)


def _judged(
    model: SparkModel,
    data: DataFrame,
    label: str | None,
    columns: Mapping[str, str],
    heads: Sequence[Head] | None,
) -> list[HeadColumns]:
    net = model.net
    found = (
        [one for one in find_heads(net) if one.blob not in EMBEDDINGS]
        if heads is None
        else list(heads)
    )
    if not found:
        raise SparkError("the net has no prediction with one row per record to evaluate")
    stored = {one.name: one.stored for one in (*net.tested.entries, *net.inputs.values())}
    judged = []
    for number, head in enumerate(found):
        truth = label if label is not None and not number else None
        wanted = truth or columns.get(head.target or "", head.target) or "label"
        truth = column_name(data, wanted)
        if truth is None:
            raise SparkError(
                f"the data has no column '{wanted}' to compare '{head.blob}' with: say "
                "which with label="
            )
        scores = _PREFIX + (head.scores or head.blob)
        judged.append(HeadColumns(head, scores, truth, truth_shape(head, stored)))
    return judged
