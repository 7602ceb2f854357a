"""MeanIoU: how well the classes of pixels are told, as intersection over union."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.layers.accuracy import Accuracy
from sparknet.layers.layer import Plan, Shape, exactly

Array = np.ndarray[Any, Any]


class MeanIoU(Accuracy):
    """Of sparknet, with Accuracy's options: intersection over union of classes, as VOC counts it.

    The top is the confusion matrix of a batch, classes x classes: how often each class (first
    axis) was told to be each (second axis); ``Net.test``, the solver and validation make the mean
    over classes of it, over all batches.  Classes that occur nowhere do not count.
    Values: axis, outer, channels, inner, top_k, ignore_label (None: none).
    """

    type = "MeanIoU"
    stock = False
    tops = exactly(1)
    evaluates = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        plan = super().infer(bottoms)
        classes = plan.values["channels"]
        if not classes:
            self.fail("needs at least 1 class; the scores have none")
        return Plan(((classes, classes),), values=plan.values)

    @staticmethod
    def summary(batches: Sequence[Array], version: str = "") -> float:
        classes = batches[0].shape[-1]
        return mean_iou(np.concatenate(batches).reshape(-1, classes, classes).sum(0, np.float64))


def ious(confusion: Array) -> Array:
    """Each class's intersection over union; NaN for a class that occurs nowhere."""
    hits = np.diagonal(confusion).astype(np.float64)
    union = confusion.sum(0) + confusion.sum(1) - hits
    found: Array = np.divide(hits, union, out=np.full(hits.shape, np.nan), where=union > 0)
    return found


def mean_iou(confusion: Array) -> float:
    """The mean over the classes that occur; NaN if none does."""
    found = ious(confusion)
    known = found[~np.isnan(found)]
    return float(known.mean()) if known.size else float("nan")
