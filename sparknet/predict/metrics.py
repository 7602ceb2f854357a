"""Evaluation: how well a model predicts, counted batch by batch and added up."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan, prod, sqrt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError, outside
from sparknet.net.heads import Head, Kind
from sparknet.predict.input_columns import check_finite, column, plain
from sparknet.predict.prediction import BAD, in_one_line

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]


def ratio(part: Any, whole: Any) -> float:
    return float(part) / float(whole) if whole else nan


@dataclass(frozen=True)
class Classified:
    """How a net tells classes apart."""

    rows: int
    """Rows that were counted; of nets that classify places (pixels, words), the places."""
    confusion: Array
    """How often each class (first axis) was predicted as each class (second axis); of labels
    beside each other, one such matrix of no and yes for each."""
    others: dict[str, Evaluation] = field(default_factory=dict, repr=False)
    """Those of a net's further predictions, by blob."""
    dropped: int = 0
    """Rows that were left out (``invalid="drop"``)."""

    @property
    def accuracy(self) -> float:
        return ratio(self.confusion.diagonal(0, -2, -1).sum(), self.confusion.sum())

    @property
    def precision(self) -> list[float]:
        """For each class, how much of what was predicted as it is it; NaN where nothing was."""
        return self._ratios(self._hits, self._predicted)

    @property
    def recall(self) -> list[float]:
        """For each class, how much of it was found; NaN where there is none of it."""
        return self._ratios(self._hits, self._true)

    @property
    def f1(self) -> list[float]:
        """For each class, the harmonic mean of precision and recall."""
        return self._ratios(2 * self._hits, self._predicted + self._true)

    @property
    def iou(self) -> list[float]:
        """For each class, intersection over union; NaN where there is none of it."""
        return self._ratios(self._hits, self._predicted + self._true - self._hits)

    @property
    def mean_iou(self) -> float:
        """The mean over the classes that occur."""
        overlaps = [one for one in self.iou if one == one]
        return ratio(sum(overlaps), len(overlaps))

    @property
    def _hits(self) -> Array:
        return self._each(self.confusion.diagonal(0, -2, -1))

    @property
    def _predicted(self) -> Array:
        return self._each(self.confusion.sum(-2))

    @property
    def _true(self) -> Array:
        return self._each(self.confusion.sum(-1))

    def _each(self, counts: Array) -> Array:
        """Return one number for each class; of a label that is or is not there, that of its
        being so.
        """
        return counts if counts.ndim == 1 else counts[:, 1]

    @staticmethod
    def _ratios(parts: Array, wholes: Array) -> list[float]:
        return [ratio(part, whole) for part, whole in zip(parts, wholes, strict=True)]


@dataclass(frozen=True)
class Regressed:
    """How far predicted numbers are off; of vectors, the mean over their numbers."""

    rows: int
    r2: float
    """1 - squared errors / squared distances from the mean; NaN where all are equal."""
    mae: float
    rmse: float
    others: dict[str, Evaluation] = field(default_factory=dict, repr=False)
    dropped: int = 0
    """Rows that were left out (``invalid="drop"``)."""


Evaluation = Classified | Regressed


class _Classes:
    """Counts pairs of true and predicted classes."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._counts: dict[tuple[float, float], int] = {}

    def compared(self, scores: Array, truth: Array, name: str) -> Array:
        head = self._head
        classes = scores.argmax(head.place + 1).ravel()
        labels = np.asarray(truth, np.float64).ravel()
        if len(classes) != len(labels):
            raise SparkError(
                f"column '{name}' has {len(labels)} labels for {len(classes)} predictions"
            )
        is_counted = np.ones(len(labels), bool) if head.ignored is None else labels != head.ignored
        fits = (labels >= 0) & (labels < head.choices) & (labels == np.rint(labels))
        if (is_counted & ~fits).any():
            odd = labels[is_counted & ~fits][0]
            raise SparkError(f"column '{name}' holds {odd:g}, and there are {head.choices} classes")
        return np.stack([labels[is_counted], classes[is_counted]], 1)

    def add(self, pairs: Array) -> None:
        for pair, count in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
            key = float(pair[0]), float(pair[1])
            self._counts[key] = self._counts.get(key, 0) + int(count)

    def rows(self) -> Iterator[tuple[int, float, float, list[float]]]:
        for (label, predicted), count in self._counts.items():
            yield 0, label, predicted, [float(count)]


class _Labels:
    """Counts for each label how often it was there and was predicted."""

    def __init__(self, head: Head) -> None:
        self._counts = np.zeros((head.values, 2, 2), np.int64)

    def compared(self, scores: Array, truth: Array, name: str) -> tuple[Array, Array]:
        marks = scores.reshape(len(scores), -1) > 0
        labels = np.asarray(truth, np.float64).reshape(len(scores), -1)
        if labels.shape != marks.shape:
            raise SparkError(f"column '{name}' has {labels.shape[1]} labels, not {marks.shape[1]}")
        if not np.isin(labels, (0, 1)).all():
            odd = labels[~np.isin(labels, (0, 1))][0]
            raise SparkError(f"column '{name}' holds {odd:g}, and a label is 0 or 1")
        return labels.astype(int), marks.astype(int)

    def add(self, compared: tuple[Array, Array]) -> None:
        labels, marks = compared
        for place in range(marks.shape[1]):
            pair = labels[:, place], marks[:, place]
            np.add.at(self._counts[place], pair, 1)

    def rows(self) -> Iterator[tuple[int, float, float, list[float]]]:
        for (place, label, predicted), count in np.ndenumerate(self._counts):
            yield place, float(label), float(predicted), [float(count)]


class _Numbers:
    """Sums up errors and the spread of the truth."""

    def __init__(self, head: Head) -> None:
        self._sums = np.zeros((5, head.values))
        """Rows, mean, squared distances from it, squared errors, errors without sign."""

    def compared(self, scores: Array, truth: Array, name: str) -> Array:
        numbers = np.asarray(scores, np.float64).reshape(len(scores), -1)
        targets = np.asarray(truth, np.float64).reshape(len(scores), -1)
        if targets.shape != numbers.shape:
            raise SparkError(
                f"column '{name}' has {targets.shape[1]} numbers, not {numbers.shape[1]}"
            )
        away, mean = numbers - targets, targets.mean(0)
        spread = ((targets - mean) ** 2).sum(0)
        rows = np.full_like(mean, len(targets))
        return np.stack([rows, mean, spread, (away**2).sum(0), abs(away).sum(0)])

    def add(self, sums: Array) -> None:
        self._sums = _merged(self._sums, sums)

    def rows(self) -> Iterator[tuple[int, float, float, list[float]]]:
        for place, sums in enumerate(self._sums.T):
            yield place, 0.0, 0.0, sums.tolist()


TALLIES: Mapping[str, Callable[[Head], Any]] = {
    "classes": _Classes,
    "labels": _Labels,
    "numbers": _Numbers,
}


def _merged(one: Array, two: Array) -> Array:
    """Return the sums of two parts (Chan, Golub and LeVeque 1979)."""
    count = np.maximum(one[0] + two[0], 1)
    apart = two[1] - one[1]
    merged = one + two
    merged[1] = one[1] + apart * two[0] / count
    merged[2] += apart**2 * one[0] * two[0] / count
    return merged


def joined(head: Head, rows: Sequence[Any]) -> Evaluation:
    if head.kind == "numbers":
        sums = np.zeros((5, head.values))
        for row in rows:
            place = slice(row.place, row.place + 1)
            sums[:, place] = _merged(sums[:, place], np.array(row.sums)[:, None])
        return _measured(sums)
    classes = head.choices if head.kind == "classes" else 2
    shape = (classes, classes) if head.is_single or head.kind == "classes" else (head.values, 2, 2)
    confusion = np.zeros(shape, np.int64)
    for row in rows:
        at = (row.place, int(row.told), int(row.predicted))[-len(shape) :]
        confusion[at] += int(row.sums[0])
    return Classified(int(confusion.sum()), confusion)


def _measured(sums: Array) -> Regressed:
    count, _, spread, squares, sizes = sums
    rows = int(count[0]) if count.size else 0
    if not rows:
        return Regressed(0, nan, nan, nan)
    r2 = [ratio(s - e, s) for s, e in zip(spread, squares, strict=True)]
    return Regressed(
        rows,
        float(np.mean(r2)),
        float((sizes / count).mean()),
        sqrt(float((squares / count).mean())),
    )


Shape = tuple[int | None, ...]
_READ = -1
"""In the place of a head: how many rows were read, and how many of them left out."""
INVALID = ("raise", "drop")
SCHEMA = "head int, place int, told double, predicted double, sums array<double>"


@dataclass(frozen=True)
class HeadColumns:
    """A head, and the columns of what it predicts and of the truth."""

    head: Head
    scores: str
    truth: str
    shape: Shape
    """Of a record of the truth."""


def head_of(output: str, kind: Kind, record: tuple[int, ...]) -> Head:
    """Return the head of an output whose classes, if it has such, lie along the first axis of a
    record.
    """
    values = prod(record)
    choices = (record[0] if record else 1) if kind == "classes" else values
    return Head(output, kind, record=tuple(record) or (1,), values=values, choices=choices)


def head_columns(
    heads: Sequence[Head],
    label: str | None,
    columns: Mapping[str, str],
    find: Callable[[str], str | None],
    stored: Mapping[str, Shape],
    prefix: str = "",
) -> list[HeadColumns]:
    """Return the heads with their columns; ``find`` gives the data's column of a name."""
    if not heads:
        raise SparkError("the net has no prediction with one row per record to evaluate")
    judged = []
    for number, head in enumerate(heads):
        name = label if label is not None and not number else None
        name = name or columns.get(head.target or "", head.target) or "label"
        truth = find(name)
        if truth is None:
            raise SparkError(
                f"the data has no column '{name}' to compare '{head.blob}' with: say which with "
                "label="
            )
        scores = prefix + (head.scores or head.blob)
        judged.append(HeadColumns(head, scores, truth, truth_shape(head, stored)))
    return judged


def evaluate_rows(
    judged: Sequence[HeadColumns], batch: pa.RecordBatch, drops: bool, dropped: int
) -> Evaluation:
    """Return the evaluation of rows of this process; ``dropped`` ones are left out already."""
    (counted,) = count_rows([batch], judged, drops)
    left_out = {"head": _READ, "place": 0, "sums": [dropped, dropped]}
    rows = [SimpleNamespace(**row) for row in (*counted.to_pylist(), left_out)]
    return add_up(judged, rows)


def add_up(judged: Sequence[HeadColumns], rows: Sequence[Any]) -> Evaluation:
    """Return the evaluation of the first head, with the others, from what partitions counted."""
    row_count, dropped = (
        int(sum(row.sums[place] for row in rows if row.head == _READ)) for place in (0, 1)
    )
    if row_count == dropped > 0:
        raise SparkError(f"none of the {dropped} rows is valid: invalid='raise' names one")
    if not row_count:
        text = "the data has no rows, and an evaluation of nothing says nothing"
        warnings.warn(text, stacklevel=outside())
    first, *rest = (
        joined(one.head, [row for row in rows if row.head == number])
        for number, one in enumerate(judged)
    )
    others = {
        one.head.blob: replace(more, dropped=dropped)
        for one, more in zip(judged[1:], rest, strict=True)
    }
    return replace(first, others=others, dropped=dropped)


def count_rows(
    batches: Iterable[pa.RecordBatch], judged: Sequence[HeadColumns], drops: bool
) -> Iterator[pa.RecordBatch]:
    """Yield what a partition adds to the results."""
    import pyarrow as pa

    tallies = [TALLIES[one.head.kind](one.head) for one in judged]
    pairs = list(zip(judged, tallies, strict=True))
    row_count = dropped = 0
    with in_one_line():
        for batch in batches:
            row_count += batch.num_rows
            dropped += _add(batch, pairs, drops)
    lists = [(number, *row) for number, tally in enumerate(tallies) for row in tally.rows()]
    lists.append((_READ, 0, 0.0, 0.0, [float(row_count), float(dropped)]))
    names = [part.split()[0] for part in SCHEMA.split(", ")]
    kinds = [pa.int32(), pa.int32(), pa.float64(), pa.float64(), pa.list_(pa.float64())]
    columns = zip(*lists, strict=True)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, names)


def _add(batch: pa.RecordBatch, pairs: Sequence[tuple[HeadColumns, Any]], drops: bool) -> int:
    """Count rows, all of them or none; of what is not valid the rows one by one, if it may be left
    out.  Returns how many were."""
    if not batch.num_rows:
        return 0
    try:
        pairs_of_values = [(tally, _compared(batch, one, tally)) for one, tally in pairs]
    except BAD:
        if not drops:
            raise
        half = batch.num_rows // 2
        parts = (batch.slice(0, half), batch.slice(half))
        return sum(_add(part, pairs, drops) for part in parts) if half else 1
    for tally, what in pairs_of_values:
        tally.add(what)
    return 0


def _compared(batch: pa.RecordBatch, one: HeadColumns, tally: Any) -> Any:
    """Return what a head's tally counts of these rows."""
    values, truths = batch.column(plain(one.scores)), batch.column(plain(one.truth))
    scores = column(values, one.scores, (one.head.values,))
    truth = column(truths, one.truth, one.shape)
    check_finite(truth, one.truth)
    return tally.compared(scores.reshape(len(scores), *one.head.record), truth, one.truth)


def truth_shape(head: Head, stored: Mapping[str, Shape]) -> Shape:
    """Return the shape of a record of what a head is compared with."""
    if head.target is not None and head.target in stored:
        return stored[head.target]
    if head.kind != "classes":
        return (head.values,)
    rest = head.record[: head.place] + head.record[head.place + 1 :]
    return rest if prod(rest) != 1 else ()
