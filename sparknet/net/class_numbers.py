"""ClassNumbers: which whole numbers an input may hold, because a loss takes them for classes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from sparknet.errors import DataError
from sparknet.layers.hinge_loss import HingeLoss
from sparknet.layers.infogain_loss import InfogainLoss
from sparknet.layers.multinomial_logistic_loss import MultinomialLogisticLoss
from sparknet.layers.softmax_with_loss import SoftmaxWithLoss
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


def class_numbers(net: Net) -> dict[str, ClassNumbers]:
    """Input → the classes of the losses that read it."""
    found: dict[str, ClassNumbers] = {}
    for layer in net.described.layer:
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
