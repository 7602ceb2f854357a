"""Tallies: what partitions count of predictions beside the truth, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan, sqrt
from typing import Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.net.heads import Head
from sparknet.spark.evaluation import Array, Classified, Evaluation, Regressed, ratio


class _Classes:
    """Counts pairs of true and predicted classes."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._counts: dict[tuple[float, float], int] = {}

    def compared(self, scores: Array, truth: Array, name: str) -> Array:
        head = self._head
        found = scores.argmax(head.place + 1).ravel()
        told = np.asarray(truth, np.float64).ravel()
        if len(found) != len(told):
            raise SparkError(f"column '{name}' has {len(told)} labels for {len(found)} predictions")
        kept = np.ones(len(told), bool) if head.ignored is None else told != head.ignored
        fits = (told >= 0) & (told < head.choices) & (told == np.rint(told))
        if (kept & ~fits).any():
            odd = told[kept & ~fits][0]
            raise SparkError(f"column '{name}' holds {odd:g}, and there are {head.choices} classes")
        return np.stack([told[kept], found[kept]], 1)

    def add(self, pairs: Array) -> None:
        for pair, count in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
            key = float(pair[0]), float(pair[1])
            self._counts[key] = self._counts.get(key, 0) + int(count)

    def rows(self) -> Iterator[tuple[int, float, float, list[float]]]:
        for (told, found), count in self._counts.items():
            yield 0, told, found, [float(count)]


class _Labels:
    """Counts for each label how often it was there and was predicted."""

    def __init__(self, head: Head) -> None:
        self._counts = np.zeros((head.values, 2, 2), np.int64)

    def compared(self, scores: Array, truth: Array, name: str) -> tuple[Array, Array]:
        found = scores.reshape(len(scores), -1) > 0
        told = np.asarray(truth, np.float64).reshape(len(scores), -1)
        if told.shape != found.shape:
            raise SparkError(f"column '{name}' has {told.shape[1]} labels, not {found.shape[1]}")
        if not np.isin(told, (0, 1)).all():
            odd = told[~np.isin(told, (0, 1))][0]
            raise SparkError(f"column '{name}' holds {odd:g}, and a label is 0 or 1")
        return told.astype(int), found.astype(int)

    def add(self, compared: tuple[Array, Array]) -> None:
        told, found = compared
        for place in range(found.shape[1]):
            pair = told[:, place], found[:, place]
            np.add.at(self._counts[place], pair, 1)

    def rows(self) -> Iterator[tuple[int, float, float, list[float]]]:
        for (place, told, found), count in np.ndenumerate(self._counts):
            yield place, float(told), float(found), [float(count)]


class _Numbers:
    """Sums up errors and the spread of the truth."""

    def __init__(self, head: Head) -> None:
        self._sums = np.zeros((5, head.values))
        """Rows, mean, squared distances from it, squared errors, errors without sign."""

    def compared(self, scores: Array, truth: Array, name: str) -> Array:
        found = np.asarray(scores, np.float64).reshape(len(scores), -1)
        told = np.asarray(truth, np.float64).reshape(len(scores), -1)
        if told.shape != found.shape:
            raise SparkError(f"column '{name}' has {told.shape[1]} numbers, not {found.shape[1]}")
        away, mean = found - told, told.mean(0)
        spread = ((told - mean) ** 2).sum(0)
        rows = np.full_like(mean, len(told))
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
    """The sums of two parts (Chan, Golub and LeVeque 1979)."""
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
