"""evaluate: how well a net predicts the rows of a DataFrame, counted where the rows lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import SparkError
from sparknet.net.heads import Head, Kind, find_heads
from sparknet.spark.by_value import by_value
from sparknet.spark.column_types import column_name, plain, quoted, with_classes, with_fields
from sparknet.spark.columns import check_finite, column
from sparknet.spark.evaluation import Evaluation
from sparknet.spark.places import BAD, in_one_line
from sparknet.spark.pooling import EMBEDDINGS
from sparknet.spark.tallies import TALLIES, joined

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from sparknet.spark.model import SparkModel

Array = np.ndarray[Any, Any]
Shape = tuple[int | None, ...]

INVALID = ("raise", "drop")
_PREFIX = "__sparknet/"
_READ = -1
"""In the place of a head: how many rows were read, and how many of them left out."""
_SCHEMA = "head int, place int, told double, predicted double, sums array<double>"


@dataclass(frozen=True)
class _Judged:
    """A head, and the columns of what it predicts and of the truth."""

    head: Head
    scores: str
    truth: str
    shape: Shape
    """Of a record of the truth."""


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


def head_of(output: str, kind: Kind, record: tuple[int, ...]) -> Head:
    """The head of an output whose classes, if it has such, lie along the first axis of a record."""
    values = prod(record)
    choices = (record[0] if record else 1) if kind == "classes" else values
    return Head(output, kind, record=tuple(record) or (1,), values=values, choices=choices)


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
    judged = [_Judged(head, _PREFIX + head.blob, truth, _truth_shape(head, {}))]
    return _compare(transform, data, judged, columns, batch, invalid == "drop")


def _compare(
    transform: Callable[..., DataFrame],
    data: DataFrame,
    judged: Sequence[_Judged],
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
    counted = by_value(partial(_counted, judged=judged, drops=drops))
    rows = chosen.mapInArrow(counted, _SCHEMA).collect()
    read, dropped = (
        int(sum(row.sums[place] for row in rows if row.head == _READ)) for place in (0, 1)
    )
    if read == dropped > 0:
        raise SparkError(f"none of the {dropped} rows is valid: invalid='raise' names one")
    first, *rest = (
        joined(one.head, [row for row in rows if row.head == number])
        for number, one in enumerate(judged)
    )
    others = {
        one.head.blob: replace(more, dropped=dropped)
        for one, more in zip(judged[1:], rest, strict=True)
    }
    return replace(first, others=others, dropped=dropped)


def _judged(
    model: SparkModel,
    data: DataFrame,
    label: str | None,
    columns: Mapping[str, str],
    heads: Sequence[Head] | None,
) -> list[_Judged]:
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
        judged.append(_Judged(head, scores, truth, _truth_shape(head, stored)))
    return judged


def _counted(
    batches: Iterable[pa.RecordBatch], judged: Sequence[_Judged], drops: bool
) -> Iterator[pa.RecordBatch]:
    """What a partition adds to the results."""
    import pyarrow as pa

    tallies = [TALLIES[one.head.kind](one.head) for one in judged]
    pairs = list(zip(judged, tallies, strict=True))
    read = dropped = 0
    with in_one_line():
        for batch in batches:
            read += batch.num_rows
            dropped += _add(batch, pairs, drops)
    lists = [(number, *row) for number, tally in enumerate(tallies) for row in tally.rows()]
    lists.append((_READ, 0, 0.0, 0.0, [float(read), float(dropped)]))
    names = [part.split()[0] for part in _SCHEMA.split(", ")]
    kinds = [pa.int32(), pa.int32(), pa.float64(), pa.float64(), pa.list_(pa.float64())]
    columns = zip(*lists, strict=True)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, names)


def _add(batch: pa.RecordBatch, pairs: Sequence[tuple[_Judged, Any]], drops: bool) -> int:
    """Count rows, all of them or none; of what is not valid the rows one by one, if it may be left
    out.  Returns how many were."""
    if not batch.num_rows:
        return 0
    try:
        found = [(tally, _compared(batch, one, tally)) for one, tally in pairs]
    except BAD:
        if not drops:
            raise
        half = batch.num_rows // 2
        parts = (batch.slice(0, half), batch.slice(half))
        return sum(_add(part, pairs, drops) for part in parts) if half else 1
    for tally, what in found:
        tally.add(what)
    return 0


def _compared(batch: pa.RecordBatch, one: _Judged, tally: Any) -> Any:
    """What a head's tally counts of these rows."""
    values, told = batch.column(plain(one.scores)), batch.column(plain(one.truth))
    scores = column(values, one.scores, (one.head.values,))
    truth = column(told, one.truth, one.shape)
    check_finite(truth, one.truth)
    return tally.compared(scores.reshape(len(scores), *one.head.record), truth, one.truth)


def _truth_shape(head: Head, stored: Mapping[str, Shape]) -> Shape:
    """The shape of a record of what a head is compared with."""
    if head.target is not None and head.target in stored:
        return stored[head.target]
    if head.kind != "classes":
        return (head.values,)
    left = head.record[: head.place] + head.record[head.place + 1 :]
    return left if prod(left) != 1 else ()
