"""HingeLoss: the margin loss, one against all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape, count
from sparknet.layers.loss import Loss, check_one_label_each


class HingeLoss(Loss):
    """Caffe: hinge_loss_layer.cpp.  Values: num, channels, norm ("l1" or "l2")."""

    type = "HingeLoss"
    stock = True
    labelled = True
    field = "hinge_loss_param"
    classes = 1
    copied = ("norm",)

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_one_label_each(self, bottoms[1])
        return {"num": bottoms[0][0], "channels": count(bottoms[0][1:])}
