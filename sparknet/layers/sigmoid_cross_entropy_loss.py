"""SigmoidCrossEntropyLoss: independent yes-or-no losses on logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape, count
from sparknet.layers.loss import Loss, check_same_count, ignore_label, normalizing


class SigmoidCrossEntropyLoss(Loss):
    """Caffe: sigmoid_cross_entropy_loss_layer.cpp.

    ``class_balanced`` is HED's (``dialect="hed"``): in each item the losses of ones count by the
    share of zeros, those of zeros by the share of ones, and other targets do not count.
    Values: outer, inner, normalization (default "batch_size"), ignore_label (None: none),
    class_balanced.
    """

    type = "SigmoidCrossEntropyLoss"
    stock = True
    squashes = "sigmoid"
    labelled = True
    field = "sigmoid_param"
    fields = ("loss_param",)

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_same_count(self, bottoms)
        return {
            "outer": bottoms[0][0],
            "inner": count(bottoms[0][1:]),
            **normalizing(self.parameter.loss_param, default="batch_size"),
            "ignore_label": ignore_label(self.parameter.loss_param),
            "class_balanced": self.parameter.loss_param.class_balanced,
        }
