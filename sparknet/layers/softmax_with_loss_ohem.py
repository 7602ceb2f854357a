"""SoftmaxWithLossOHEM: SoftmaxWithLoss that also gives the loss of each region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparknet.layers.layer import Plan, Shape, between
from sparknet.layers.softmax_with_loss import SoftmaxWithLoss


class SoftmaxWithLossOHEM(SoftmaxWithLoss):
    """softmax_loss_ohem_layer.cpp of R-FCN: SoftmaxWithLoss, whose top 2 is the loss of each label
    in the shape of the labels; an ignored one has 0.
    """

    type = "SoftmaxWithLossOHEM"
    stock = False
    tops = between(1, 3)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        plan = super().infer(bottoms)
        each = (bottoms[1],) if len(self.parameter.top) > 2 else ()
        return replace(plan, tops=(*plan.tops, *each))
