"""Accuracy: the share of right predictions."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, between, count, exactly
from sparknet.layers.loss import check_label_count
from sparknet.layers.softmax import around


class Accuracy(Layer):
    """Top-k accuracy, and with a second top that of each class (Caffe: accuracy_layer.cpp).

    Values: axis, outer, channels, inner, top_k, ignore_label (None: none).
    """

    type = "Accuracy"
    stock = True
    labelled = True
    field = "accuracy_param"
    bottoms = exactly(2)
    tops = between(1, 2)
    gradient = False
    judges = True
    classes = 1
    copied = ("top_k",)

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
