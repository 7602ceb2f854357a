"""Accuracy, and SegNet's SegAccuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.layers.activations import around
from sparknet.layers.host import Blobs, Host, HostNode, class_numbers
from sparknet.layers.layer import Layer, Plan, Shape, between, count, exactly, layer, shape_text
from sparknet.layers.losses import check_label_count


@layer("Accuracy", stock=True)
class Accuracy(Layer):
    """Top-k accuracy, and with a second top that of each class (Caffe: accuracy_layer.cpp)."""

    field = "accuracy_param"
    bottoms = exactly(2)
    tops = between(1, 2)
    has_gradient = False
    compares_labels = True
    other_bottoms = "classes"
    plain_options = ("top_k",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        scores, labels = bottoms
        options = self.options
        axis = self.axis(options.axis, scores)
        check_label_count(self, scores, labels, axis)
        if options.top_k < 1:
            self.fail(f"top_k {options.top_k} must be at least 1")
        if options.top_k > scores[axis] and count(scores):
            self.fail(f"top_k {options.top_k} is more than the number of classes, {scores[axis]}")
        ignore = options.ignore_label if options.HasField("ignore_label") else None
        values = {**around(scores, axis), "ignore_label": ignore}
        per_class: tuple[Shape, ...] = ((scores[axis],),) if len(self.parameter.top) > 1 else ()
        return Plan(tops=((), *per_class), values=values)


class SegAccuracyHost(Host):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.counts: Any = None

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values, scores = self.node.plan.values, bottoms[0].data
        classes = scores.shape[1]
        if self.counts is None or values["reset"] or len(self.counts) != classes:
            self.counts = np.zeros((classes, classes), np.int64)
        labels = bottoms[1].data[:, 0]
        counted = ~np.isin(np.trunc(labels), values["ignored"])
        real = class_numbers(self.node, labels[counted], classes)
        # Of equal scores the later class counts, as there.
        guesses = classes - 1 - scores[:, ::-1].argmax(1)[counted]
        self.counts += np.bincount(real * classes + guesses, minlength=classes**2).reshape(
            classes, classes
        )
        tops[0].data[...] = [[[figures(self.counts)]]]


def figures(counts: Any) -> tuple[float, float, float]:
    """Return pixel accuracy, its mean over classes and mean IoU; absent classes count as 1."""
    right, rows, union = np.diag(counts), counts.sum(1), counts.sum(1) + counts.sum(0)
    union = union - right
    counted_rows = rows > 0
    share = right[counted_rows] / rows[counted_rows]
    overlap = np.where(union > 0, right / np.maximum(union, 1), 1.0)
    accuracy = right.sum() / max(int(rows.sum()), 1)
    return (
        float(accuracy),
        float(share.mean()) if counted_rows.any() else 0.0,
        float(overlap.mean()),
    )


MOST_CLASSES = 10_000


@layer("SegAccuracy")
class SegAccuracy(Layer):
    """seg_accuracy_layer.cpp of DeepLab and PSPNet; bottoms: scores (N x classes x H x W) and
    labels (N x 1 x H x W).

    The top is 1 x 1 x 1 x 3: the share of right pixels, its mean over the classes that occur, and
    the mean intersection over union.  Pixels with an ignore_label do not count; `reset: false`
    counts those of all passes."""

    host = SegAccuracyHost
    other_bottoms = "indices"
    field = "seg_accuracy_param"
    bottoms = exactly(2)
    has_gradient = False
    compares_labels = True
    plain_options = ("reset",)
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        scores, labels = bottoms
        if len(scores) != 4 or not 1 <= scores[1] <= MOST_CLASSES:
            self.fail(
                f"needs scores of N x classes x H x W, at most {MOST_CLASSES} classes; "
                f"their shape is {shape_text(scores)}"
            )
        if tuple(labels) != (scores[0], 1, *scores[2:]):
            self.fail(
                f"needs a label for each pixel of {shape_text(scores)}; "
                f"their shape is {shape_text(labels)}"
            )
        return Plan(((1, 1, 1, 3),), values={"ignored": tuple(self.options.ignore_label)})
