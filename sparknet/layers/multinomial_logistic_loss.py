"""MultinomialLogisticLoss: cross entropy over given probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape, count
from sparknet.layers.loss import Loss, check_one_label_each


class MultinomialLogisticLoss(Loss):
    """Caffe: multinomial_logistic_loss_layer.cpp.  Values: num, channels."""

    type = "MultinomialLogisticLoss"
    stock = True
    labelled = True
    classes = 1

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_one_label_each(self, bottoms[1])
        return {"num": bottoms[0][0], "channels": count(bottoms[0][1:])}
