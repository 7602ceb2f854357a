"""SoftmaxWithLossOHEM: SoftmaxWithLoss that also gives the loss of each region."""

from __future__ import annotations

from sparknet.layers.softmax_with_loss import SoftmaxWithLoss


class SoftmaxWithLossOHEM(SoftmaxWithLoss):
    """softmax_loss_ohem_layer.cpp of R-FCN: SoftmaxWithLoss with its third top."""

    type = "SoftmaxWithLossOHEM"
    stock = False
