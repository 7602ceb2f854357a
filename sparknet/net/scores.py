"""Scores: the metrics of a test, and means of a test net's outputs over records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sparknet.errors import DataError, SettingError
from sparknet.layers import LAYERS
from sparknet.net.entries import NetMessage
from sparknet.proto.suggest import did_you_mean

Array = np.ndarray[Any, Any]

OF_CLASSES = ("confusion", "class_accuracy", "mean_iou")
OF_VALUES = ("mae", "rmse", "r2")
NAMES = (*OF_CLASSES, *OF_VALUES)
Goal = Literal["max", "min"]
GOALS: Mapping[str, Goal] = {
    "class_accuracy": "max",
    "mean_iou": "max",
    "mae": "min",
    "rmse": "min",
    "r2": "max",
}
"""Whether a larger or a smaller value of a metric is better."""
_PART = "\0part "
"""How the names of parts begin; no layer has such a name."""
MOST_CLASSES = 1000
_CONFUSION = "confusion["


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names as a tuple; SettingError if one is unknown."""
    if isinstance(names, str):
        raise SettingError(f"metrics must be a list of names, not '{names}'")
    for name in names:
        if name not in NAMES:
            hint = did_you_mean(str(name), NAMES) or f" (there are: {', '.join(NAMES)})"
            raise SettingError(f"there is no metric '{name}'{hint}")
    return tuple(names)


class Judged(NamedTuple):
    """What metrics compare: two blobs, and the label that does not count, if there is one."""

    predictions: str
    targets: str
    ignored: int | None


def judged_blobs(net: NetMessage, inputs: Sequence[str]) -> Judged:
    """Return those of the first loss or accuracy with an input."""
    for layer in net.layer:
        kind = LAYERS.get(layer.type)
        if kind is None or not (kind.is_loss or kind.compares_labels) or len(layer.bottom) < 2:
            continue
        first, second = layer.bottom[:2]
        if second not in inputs and first in inputs:  # EuclideanLoss takes both orders
            first, second = second, first
        if second in inputs:
            params = (layer.loss_param, layer.accuracy_param)
            ignored = [one.ignore_label for one in params if one.HasField("ignore_label")]
            return Judged(first, second, next(iter(ignored), None))
    raise SettingError(
        f"metrics need a loss or an accuracy with targets: net '{net.name}' has none for testing"
    )


def goals_of(net: NetMessage) -> dict[str, Goal]:
    """Return whether a larger or a smaller value is better, for tops whose layers tell."""
    goals: dict[str, Goal] = {}
    for layer in net.layer:
        kind = LAYERS.get(layer.type)
        weights = layer.loss_weight or (kind is not None and kind.is_loss,)
        if kind is not None and kind.compares_labels and not kind.is_loss:
            goals |= dict.fromkeys(layer.top, "max")
        goals |= {top: "min" for top, one in zip(layer.top, weights, strict=False) if one > 0}
    return goals


class Scores:
    """Sums over batches, for the metrics of these names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._classes = any(name in OF_CLASSES for name in names)
        self._values = any(name in OF_VALUES for name in names)
        self._records = 0
        self._confusion: Array | None = None
        self._sums = np.zeros(5)

    def add(
        self, predictions: Array, targets: Array, records: int, ignored: int | None = None
    ) -> None:
        self._records += records
        if self._classes:
            self._add_classes(predictions, targets, ignored)
        if self._values:
            self._add_values(predictions, targets)

    def _add_classes(self, predictions: Array, targets: Array, ignored: int | None) -> None:
        classes = predictions.shape[1] if predictions.ndim > 1 else 0
        if not 2 <= classes <= MOST_CLASSES:
            raise DataError(f"metrics of classes need 2 to {MOST_CLASSES} of them, not {classes}")
        winners = np.argmax(predictions, axis=1).ravel()
        real = np.asarray(targets).ravel()
        if len(real) != len(winners):
            raise DataError(f"{len(winners)} predictions do not fit {len(real)} labels")
        counted = (real >= 0) & (real < classes)  # others, such as 255, are to be ignored
        if ignored is not None:
            counted &= real != ignored
        places = real[counted].astype(np.int64) * classes + winners[counted]
        counts = np.bincount(places, minlength=classes * classes).astype(np.float64)
        if self._confusion is None:
            self._confusion = np.zeros(classes * classes)
        self._confusion += counts

    def _add_values(self, predictions: Array, targets: Array) -> None:
        predicted, real = (np.asarray(one, np.float64).ravel() for one in (predictions, targets))
        if predicted.shape != real.shape:
            raise DataError(f"{len(predicted)} predictions do not fit {len(real)} targets")
        error = predicted - real
        parts = (len(real), np.abs(error).sum(), error @ error, real.sum(), real @ real)
        self._sums += np.array(parts)

    def parts(self) -> dict[str, float]:
        """Means over records, by names that no layer has."""
        count = max(self._records, 1)
        parts: dict[str, float] = {}
        if self._confusion is not None:
            parts |= {f"{_PART}c{n}": float(v) / count for n, v in enumerate(self._confusion)}
        if self._values:
            parts |= {f"{_PART}v{n}": float(v) / count for n, v in enumerate(self._sums)}
        return parts


def finished(metrics: Mapping[str, float], names: Sequence[str], records: int) -> dict[str, float]:
    """Return the metrics, with those of these names in place of the parts."""
    metrics_of_run = {name: value for name, value in metrics.items() if not name.startswith(_PART)}
    counts = _numbered(metrics, "c") * records
    confusion = np.rint(counts).reshape(round(len(counts) ** 0.5), -1) if len(counts) else None
    sums = _numbered(metrics, "v")
    for name in names:
        if name in OF_CLASSES and confusion is not None:
            metrics_of_run |= _of_classes(name, confusion)
        elif name in OF_VALUES and len(sums):
            metrics_of_run[name] = _of_values(name, sums)
    return metrics_of_run


def confusion_of(metrics: Mapping[str, float]) -> Array | None:
    """Return the confusion matrix in metrics, true classes in rows; None if there is none."""
    counts = [value for name, value in metrics.items() if name.startswith(_CONFUSION)]
    return np.array(counts).reshape(round(len(counts) ** 0.5), -1) if counts else None


def without_confusion(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics other than the numbers of a confusion matrix."""
    return {name: one for name, one in metrics.items() if not name.startswith(_CONFUSION)}


def _numbered(metrics: Mapping[str, float], kind: str) -> Array:
    numbered = {
        int(name.removeprefix(_PART + kind)): value
        for name, value in metrics.items()
        if name.startswith(_PART + kind)
    }
    return np.array([numbered[number] for number in sorted(numbered)])


def _of_classes(name: str, confusion: Array) -> dict[str, float]:
    if name == "confusion":
        return {f"confusion[{n}]": float(value) for n, value in enumerate(confusion.ravel())}
    right, real, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    if name == "class_accuracy":
        return {
            f"class_accuracy[{n}]": float(hits / count) if count else float("nan")
            for n, (hits, count) in enumerate(zip(right, real, strict=True))
        }
    union = real + predicted - right
    there = union > 0
    return {
        "mean_iou": float(np.mean(right[there] / union[there])) if there.any() else float("nan")
    }


def _of_values(name: str, sums: Array) -> float:
    count, absolute, squared, total, squares = sums
    if name == "mae":
        return float(absolute / count)
    if name == "rmse":
        return float(np.sqrt(squared / count))
    spread = squares - total * total / count
    return float(1 - squared / spread) if spread > 0 else float("nan")


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
    average precision by one of SSD's ways (`ap_version`)."""

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
        """Return the metrics, single numbers first: the first one picks the best validation."""
        means = {name: self._mean(name, one) for name, one in self._sums.items()}
        shares = {name: mean / self.records for name, mean in means.items() if mean is not None}
        for name, batches in self._judged.items():
            if batches:
                shares[name] = np.array(self.summary(name, batches))
        first = [
            name for name in shares if name in self._judged or self._sums[name].elements.size == 1
        ]
        return {name: shares[name] for name in [*first, *shares]}

    def judged(self, name: str) -> Array:
        """Return what was counted for an evaluated output, in two axes, which may be handed on."""
        batches = [batch.reshape(-1, batch.shape[-1]) for batch in self._judged[name]]
        return np.concatenate(batches) if batches else np.zeros((0, 0), np.float32)

    def summary(self, name: str, batches: Sequence[Array]) -> float:
        """Return the metric of an evaluated output."""
        return self._evaluated[name](batches, self._ap_version)

    def result(self) -> dict[str, float]:
        """Return the metrics by name; ``name[0]``, ``name[1]`` … where an output has several."""
        return flattened(self.arrays())

    def _mean(self, name: str, one: _Sum) -> Array | None:
        if one.is_steady and one.elements.size == 1:
            return one.elements
        if one.per_record and name not in self._measures:
            return np.array(one.mean) if one.single else None
        return one.elements if one.is_steady and one.elements.size <= LARGEST else None


def flattened(arrays: Mapping[str, Array]) -> dict[str, float]:
    """Return the elements of arrays by name: ``name``, or ``name[0]``, ``name[1]`` …"""
    return {
        name if values.size == 1 else f"{name}[{index}]": float(value)
        for name, values in arrays.items()
        for index, value in enumerate(values.ravel())
    }
