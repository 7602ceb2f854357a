"""SoftmaxWithLoss: softmax and cross entropy in one."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, between
from sparknet.layers.loss import Loss, check_label_count, ignore_label, normalization
from sparknet.layers.softmax import around


class SoftmaxWithLoss(Loss):
    """A second top gives the probabilities (Caffe: softmax_loss_layer.cpp).

    Values: axis, outer, channels, inner, normalization (default "valid"),
    ignore_label (None: none).
    """

    type = "SoftmaxWithLoss"
    squashes = "softmax"
    labelled = True
    field = "softmax_param"
    fields = ("loss_param",)
    tops = between(1, 2)
    classes = 1

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        data, labels = bottoms
        axis = self.axis(self.options.axis, data)
        check_label_count(self, data, labels, axis)
        values = {
            **around(data, axis),
            "normalization": normalization(self.parameter.loss_param, default="valid"),
            "ignore_label": ignore_label(self.parameter.loss_param),
        }
        probabilities = (data,) if len(self.parameter.top) > 1 else ()
        return Plan(tops=((), *probabilities), values=values)
