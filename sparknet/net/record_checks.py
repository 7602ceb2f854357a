"""Checks of records before a training: class numbers that losses know, and the first records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, prod
from typing import Any

import numpy as np

from sparknet.errors import DataError, warn
from sparknet.layers import LAYERS, TEST, TRAIN
from sparknet.layers.losses import (
    HingeLoss,
    InfogainLoss,
    MultinomialLogisticLoss,
    SigmoidCrossEntropyLoss,
    SoftmaxWithLoss,
)
from sparknet.loaders.records import ClassesWarning, Records
from sparknet.net.entries import LayerMessage
from sparknet.net.feed import ENCODED, Feed
from sparknet.net.input_warnings import RangeWarning, warn_of_range
from sparknet.net.net import Net

Array = np.ndarray[Any, Any]


Ranges = dict[str, tuple[float, float]]
_LARGEST = float(np.finfo(np.float32).max)
_FAR = 50.0
"""How many times as large values of validation may be as those of training, or as small."""
_BLOCK = 1024
OUTLIER = 1e6
"""How many times as large as those of the first records a value may be."""
_SCANNED = 1 << 26
"""Bytes of a column that are looked through for outliers."""


def look_at_first(net: Net, records: Records, what: str, known: Ranges | None = None) -> Ranges:
    """Check the first records and warn of odd values; return the ranges of the values.

    It looks at a batch, or at one encoded record.  ``known`` are the ranges of training."""
    if not len(records):
        raise DataError(f"the {what} is empty")
    if known is not None:
        net.tested.check_columns(records.columns)
    fed = net.inputs.values() if known is None else net.tested.entries
    entries = [entry for entry in fed if entry.name in records.columns]
    encoded = any(records.columns[entry.name].dtype.kind in ENCODED for entry in entries)
    count = min(len(records), 1 if encoded else max((one.batch for one in entries), default=1))
    block = records.take(slice(0, count))
    values = Feed(entries, TRAIN if known is None else TEST, 0).checked(block)
    classes = class_numbers(net)
    ranges: Ranges = {}
    for name, rows in values.items():
        _check_finite(name, rows, what)
        warn_of_range(next(entry for entry in entries if entry.name == name), rows)
        if name in classes:
            classes[name].check(rows, name)
        elif rows.size:
            ranges[name] = float(rows.min()), float(rows.max())
    if known is None and count > 1 and ranges and all(low == high for low, high in ranges.values()):
        warn(
            f"column '{next(iter(ranges))}' holds {next(iter(ranges.values()))[0]:g} alone in the "
            f"first {count} records: a net learns nothing of constants",
            RangeWarning,
        )
    if ranges and not encoded:
        _warn_of_outliers(records, what, ranges)
    for name in ranges.keys() & (known or {}).keys():
        _compare(name, ranges[name], (known or {})[name])
    return ranges


def _check_finite(name: str, rows: Array, what: str, first: int = 0) -> None:
    if rows.dtype.kind != "f":
        return
    is_sound = np.abs(rows) <= _LARGEST  # also false for NaN
    odd = np.flatnonzero(~is_sound.reshape(len(rows), -1).all(axis=1))
    if odd.size:
        value = next(one for one in rows[odd[0]].flat if not abs(one) <= _LARGEST)
        raise DataError(
            f"column '{name}' of the {what} holds {value} in record {first + odd[0]}: fill or "
            "leave out such records"
        )


def _warn_of_outliers(records: Records, what: str, known: Ranges) -> None:
    """Warn of a value in a later record that is far beyond those of the first."""
    sizes = {name: records.columns[name].dtype.itemsize * len(records) for name in known}
    names = [
        name
        for name, size in sizes.items()
        if records.columns[name].dtype.kind == "f"
        and size * math.prod(records.columns[name].shape) <= _SCANNED
    ]
    for begin in range(0, len(records) if names else 0, _BLOCK):
        block = records.take(slice(begin, begin + _BLOCK))
        for name in names:
            rows, (low, high) = np.abs(block[name].reshape(len(block[name]), -1)), known[name]
            largest = float(np.nanmax(rows, initial=0))
            if largest > OUTLIER * max(abs(low), abs(high), 1):
                record = begin + int(np.flatnonzero((rows == largest).any(axis=1))[0])
                warn(
                    f"column '{name}' of the {what} holds {largest:g} in record {record}, and the "
                    f"first records run from {low:.4g} to {high:.4g}: mend or leave out such "
                    "records",
                    RangeWarning,
                )
                return


def _compare(name: str, held: tuple[float, float], known: tuple[float, float]) -> None:
    """Warn of values of validation of another size than those of training."""
    sizes = [max(map(abs, one)) for one in (held, known)]
    if min(sizes) > 0 and max(sizes) / min(sizes) > _FAR:
        warn(
            f"column '{name}' runs from {known[0]:.4g} to {known[1]:.4g} in the training data and "
            f"from {held[0]:.4g} to {held[1]:.4g} in the validation data: scale both alike",
            RangeWarning,
        )


def find_odd(net: Net, records: Records, what: str) -> None:
    """Refuse the first record that is not finite: a loss may be NaN for it."""
    names = [name for name in net.inputs if name in records.columns]
    if any(records.columns[name].dtype.kind == "f" for name in names):
        for begin in range(0, len(records), _BLOCK):
            rows = records.take(slice(begin, begin + _BLOCK))
            for name in names:
                _check_finite(name, rows[name], what, begin)


_ALONG_AXIS = {SoftmaxWithLoss.type: "softmax_param", InfogainLoss.type: "infogain_loss_param"}
_WHOLE_RECORD = (HingeLoss.type, MultinomialLogisticLoss.type)


@dataclass(frozen=True)
class ClassNumbers:
    """Classes are numbered from 0."""

    count: int
    ignored: int | None = None
    """The number of what no loss counts."""

    def check(self, values: np.ndarray[Any, Any], name: str) -> None:
        """DataError for a value of column ``name`` that is no class."""
        is_class = (values >= 0) & (values < self.count) & (values == np.rint(values))
        if self.ignored is not None:
            is_class |= values == self.ignored
        if not is_class.all():
            odd = float(values[~is_class][0])
            raise DataError(
                f"column '{name}' holds {odd:g}, which is no class: there are {self.count}, "
                f"numbered from 0 to {self.count - 1}"
            )


@dataclass(frozen=True)
class Shares(ClassNumbers):
    """Targets from 0 to 1, as SigmoidCrossEntropyLoss takes them."""

    def check(self, values: np.ndarray[Any, Any], name: str) -> None:
        """DataError for a value of column ``name`` that is no share."""
        fits = (values >= 0) & (values <= 1)
        if self.ignored is not None:
            fits |= values == self.ignored
        if not fits.all():
            odd = float(values[~fits][0])
            raise DataError(
                f"column '{name}' holds {odd:g}: targets of SigmoidCrossEntropyLoss are from 0 to 1"
            )


def chance_loss(net: Net) -> float | None:
    """Return the loss of a net that guesses; None where not every loss is a mean over classes."""
    total = 0.0
    for layer in net.described.layer:
        kind = LAYERS.get(layer.type)
        if kind is None or not (kind.is_loss or any(layer.loss_weight)):
            continue
        if kind is not SoftmaxWithLoss or layer.loss_param.HasField("normalization"):
            return None
        weight = layer.loss_weight[0] if layer.loss_weight else 1.0
        total += weight * log(_count(layer, tuple(net.net.blobs[layer.bottom[0]].shape)))
    return total or None


def check_names(net: Net, labels: Sequence[str], what: str) -> None:
    """DataError for more classes than the net has outputs; a warning for fewer."""
    for numbers in class_numbers(net).values() if labels else ():
        listed = f"the {what} has {len(labels)} classes, and the net's loss has {numbers.count}"
        if isinstance(numbers, Shares) or numbers.count == len(labels):
            continue
        if numbers.count < len(labels):
            raise DataError(f"{listed}: give its last layer {len(labels)} outputs, or head=")
        warn(f"{listed}: nothing teaches the other outputs", ClassesWarning)


def check_counts(net: Net, arrays: Mapping[str, Any]) -> None:
    """Warn of labels that are all of one class, or that seem to be numbered from 1."""
    for name, numbers in class_numbers(net).items():
        values = np.asarray(arrays.get(name, ()))
        if isinstance(numbers, Shares) or values.size < 2 or values.dtype.kind not in "iuf":
            continue
        low, high = values.min(), values.max()
        text = f"all labels are {low:g}" if low == high else f"labels run from {low:g} to {high:g}"
        if low == high or (low > 0 and high == numbers.count - 1):
            warn(
                f"column '{name}' of the training data: {text}, and the net's {numbers.count} "
                "classes are numbered from 0",
                ClassesWarning,
            )


def class_numbers(net: Net) -> dict[str, ClassNumbers]:
    """Input → the classes of the losses that read it."""
    numbers: dict[str, ClassNumbers] = {}
    for layer in net.described.layer:
        if layer.type == SigmoidCrossEntropyLoss.type and layer.bottom[1] in net.inputs:
            numbers.setdefault(layer.bottom[1], Shares(2, _ignored(layer)))
        if layer.type not in _ALONG_AXIS and layer.type not in _WHOLE_RECORD:
            continue
        label = layer.bottom[1]
        if label not in net.inputs:
            continue
        count = _count(layer, tuple(net.net.blobs[layer.bottom[0]].shape))
        if label not in numbers or count < numbers[label].count:
            numbers[label] = ClassNumbers(count, _ignored(layer))
    return numbers


def _count(layer: LayerMessage, shape: tuple[int, ...]) -> int:
    if layer.type in _WHOLE_RECORD:
        return prod(shape[1:])
    return int(shape[getattr(layer, _ALONG_AXIS[layer.type]).axis])


def _ignored(layer: LayerMessage) -> int | None:
    options = layer.loss_param
    return int(options.ignore_label) if options.HasField("ignore_label") else None
