"""What `evaluate` finds: how well a net predicts the rows of a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

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
        known = [one for one in self.iou if one == one]
        return ratio(sum(known), len(known))

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
        """One number for each class; of a label that is or is not there, that of its being so."""
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
