"""SoftmaxWithLoss: softmax and cross entropy in one."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, between
from sparknet.layers.loss import Loss, check_label_count, ignore_label, normalizing
from sparknet.layers.softmax import around


class SoftmaxWithLoss(Loss):
    """A second top gives the probabilities (Caffe: softmax_loss_layer.cpp); a third, of forks,
    the loss of each label in the shape of the labels; an ignored one has 0.

    Values: axis, outer, channels, inner, normalization (default "valid"),
    ignore_label (None: none), class_weights (absent: all 1).

    SegNet's ``weight_by_label_freqs`` multiplies each label's part of the loss by its class's
    number in ``class_weighting``; the divisor stays.
    """

    type = "SoftmaxWithLoss"
    stock = True
    squashes = "softmax"
    labelled = True
    field = "softmax_param"
    fields = ("loss_param",)
    tops = between(1, 3)
    classes = 1

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        data, labels = bottoms
        axis = self.axis(self.options.axis, data)
        check_label_count(self, data, labels, axis)
        values = {
            **around(data, axis),
            **normalizing(self.parameter.loss_param, default="valid"),
            "ignore_label": ignore_label(self.parameter.loss_param),
            **self._class_weights(data[axis]),
        }
        return Plan(tops=((), data, labels)[: max(len(self.parameter.top), 1)], values=values)

    def _class_weights(self, classes: int) -> dict[str, tuple[float, ...]]:
        options = self.parameter.loss_param
        weights = tuple(float(weight) for weight in options.class_weighting)
        if not options.weight_by_label_freqs:
            return {}
        if len(weights) != classes:
            self.fail(
                f"weight_by_label_freqs needs a class_weighting for each of the {classes} classes; "
                f"there are {len(weights)}"
            )
        return {"class_weights": weights}
