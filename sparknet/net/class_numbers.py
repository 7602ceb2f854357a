"""ClassNumbers: which whole numbers an input may hold, because a loss takes them for classes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, prod
from typing import Any

import numpy as np

from sparknet.errors import DataError, outside
from sparknet.layers import LAYERS
from sparknet.layers.losses import (
    HingeLoss,
    InfogainLoss,
    MultinomialLogisticLoss,
    SigmoidCrossEntropyLoss,
    SoftmaxWithLoss,
)
from sparknet.loaders.records import ClassesWarning
from sparknet.net.entries import LayerMessage
from sparknet.net.net import Net

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
        if kind is None or not (kind.loss or any(layer.loss_weight)):
            continue
        if kind is not SoftmaxWithLoss or layer.loss_param.HasField("normalization"):
            return None
        weight = layer.loss_weight[0] if layer.loss_weight else 1.0
        total += weight * log(_count(layer, tuple(net.net.blobs[layer.bottom[0]].shape)))
    return total or None


def check_names(net: Net, labels: Sequence[str], what: str) -> None:
    """DataError for more classes than the net has outputs; a warning for fewer."""
    for known in class_numbers(net).values() if labels else ():
        listed = f"the {what} has {len(labels)} classes, and the net's loss has {known.count}"
        if isinstance(known, Shares) or known.count == len(labels):
            continue
        if known.count < len(labels):
            raise DataError(f"{listed}: give its last layer {len(labels)} outputs, or head=")
        warnings.warn(
            f"{listed}: nothing teaches the other outputs", ClassesWarning, stacklevel=outside()
        )


def check_counts(net: Net, arrays: Mapping[str, Any]) -> None:
    """Warn of labels that are all of one class, or that seem to be numbered from 1."""
    for name, known in class_numbers(net).items():
        values = np.asarray(arrays.get(name, ()))
        if isinstance(known, Shares) or values.size < 2 or values.dtype.kind not in "iuf":
            continue
        low, high = values.min(), values.max()
        told = f"all labels are {low:g}" if low == high else f"labels run from {low:g} to {high:g}"
        if low == high or (low > 0 and high == known.count - 1):
            warnings.warn(
                f"column '{name}' of the training data: {told}, and the net's {known.count} "
                "classes are numbered from 0",
                ClassesWarning,
                stacklevel=outside(),
            )


def class_numbers(net: Net) -> dict[str, ClassNumbers]:
    """Input → the classes of the losses that read it."""
    found: dict[str, ClassNumbers] = {}
    for layer in net.described.layer:
        if layer.type == SigmoidCrossEntropyLoss.type and layer.bottom[1] in net.inputs:
            found.setdefault(layer.bottom[1], Shares(2, _ignored(layer)))
        if layer.type not in _ALONG_AXIS and layer.type not in _WHOLE_RECORD:
            continue
        label = layer.bottom[1]
        if label not in net.inputs:
            continue
        count = _count(layer, tuple(net.net.blobs[layer.bottom[0]].shape))
        if label not in found or count < found[label].count:
            found[label] = ClassNumbers(count, _ignored(layer))
    return found


def _count(layer: LayerMessage, shape: tuple[int, ...]) -> int:
    if layer.type in _WHOLE_RECORD:
        return prod(shape[1:])
    return int(shape[getattr(layer, _ALONG_AXIS[layer.type]).axis])


def _ignored(layer: LayerMessage) -> int | None:
    options = layer.loss_param
    return int(options.ignore_label) if options.HasField("ignore_label") else None
