"""Means: averages a test net's outputs over records, whatever the batch sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

Summary = Callable[[Sequence[Array], str], float]
"""Makes a metric of what a layer that evaluates counted in each batch."""
LARGEST = 1000
"""The most numbers of one output that are listed one by one."""


@dataclass
class _Sum:
    """The sum of one output over batches, each weighted by its number of records."""

    shape: tuple[int, ...]
    elements: Array
    mean: float = 0.0
    is_steady: bool = True
    """Whether it had the same shape in all batches."""
    per_record: bool = True
    """Whether its first axis was the records' in all batches."""
    single: bool = True
    """Whether it had one number for each record."""

    def add(self, values: Array, records: int) -> None:
        self.mean += float(values.mean()) * records if values.size else 0.0
        self.per_record &= values.ndim > 0 and values.shape[0] == records
        self.single &= values.size == records
        self.is_steady &= values.shape == self.shape
        if self.is_steady and values.size <= LARGEST:
            self.elements = self.elements + np.asarray(values, np.float64) * records


class Means:
    """Averages outputs over batches, each weighted by its number of records.

    An output of one number is a metric; an output of several numbers is a metric for each.  An
    output with one number per record counts by its mean; one with more is a prediction and no
    metric.  The tops in ``measures`` have no axis of records.  Those in ``evaluated`` hold counts,
    as judged detections, of which a function makes a metric when all batches are known: the mean
    average precision by one of SSD's ways (`ap_version`).
    """

    def __init__(
        self,
        measures: Collection[str] = (),
        evaluated: Mapping[str, Summary] | None = None,
        ap_version: str = "Integral",
    ) -> None:
        self.batches = 0
        self.records = 0
        self._measures, self._ap_version = measures, ap_version
        self._evaluated = evaluated or {}
        self._judged: dict[str, list[Array]] = {name: [] for name in self._evaluated}
        self._sums: dict[str, _Sum] = {}

    def add(self, outputs: Mapping[str, Any], records: int) -> None:
        for name, values in outputs.items():
            array = np.asarray(values)
            if name in self._judged:
                self._judged[name].append(np.array(array))
                continue
            if name not in self._sums:
                self._sums[name] = _Sum(array.shape, np.zeros(array.shape))
            self._sums[name].add(array, records)
        self.batches += 1
        self.records += records

    def arrays(self) -> dict[str, Array]:
        """The metrics, single numbers first: the first one decides which validation is best."""
        found = {name: self._mean(name, one) for name, one in self._sums.items()}
        held = {name: mean / self.records for name, mean in found.items() if mean is not None}
        for name, batches in self._judged.items():
            if batches:
                held[name] = np.array(self.summary(name, batches))
        first = [
            name for name in held if name in self._judged or self._sums[name].elements.size == 1
        ]
        return {name: held[name] for name in [*first, *held]}

    def judged(self, name: str) -> Array:
        """What was counted for an evaluated output, in two axes, which may be handed on."""
        batches = [batch.reshape(-1, batch.shape[-1]) for batch in self._judged[name]]
        return np.concatenate(batches) if batches else np.zeros((0, 0), np.float32)

    def summary(self, name: str, batches: Sequence[Array]) -> float:
        """The metric of an evaluated output."""
        return self._evaluated[name](batches, self._ap_version)

    def result(self) -> dict[str, float]:
        """The metrics by name; ``name[0]``, ``name[1]`` … where an output has several."""
        return flattened(self.arrays())

    def _mean(self, name: str, one: _Sum) -> Array | None:
        if one.is_steady and one.elements.size == 1:
            return one.elements
        if one.per_record and name not in self._measures:
            return np.array(one.mean) if one.single else None
        return one.elements if one.is_steady and one.elements.size <= LARGEST else None


def flattened(arrays: Mapping[str, Array]) -> dict[str, float]:
    """The elements of arrays by name: ``name``, or ``name[0]``, ``name[1]`` …"""
    return {
        name if values.size == 1 else f"{name}[{index}]": float(value)
        for name, values in arrays.items()
        for index, value in enumerate(values.ravel())
    }
