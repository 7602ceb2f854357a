"""EuclideanLoss: half the mean squared distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape
from sparknet.layers.loss import Loss, check_same_count


class EuclideanLoss(Loss):
    """Both bottoms may receive a gradient (Caffe: euclidean_loss_layer.cpp).  Values: num."""

    type = "EuclideanLoss"
    stock = True
    unforced = ()

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_same_count(self, bottoms, start=1)
        return {"num": bottoms[0][0]}
