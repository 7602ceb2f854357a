"""TripletLoss: an anchor nearer to what is alike than to what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape, exactly, shape_text
from sparknet.layers.loss import Loss


class TripletLoss(Loss):
    """triplet_loss_layer.cpp of several forks; bottoms: anchors, positives and negatives (N x C).

    Half the mean of max(0, margin + |a - p|^2 - |a - n|^2).  Values: margin.
    """

    type = "TripletLoss"
    field = "triplet_loss_param"
    bottoms = exactly(3)
    copied = ("margin",)
    unforced = ()

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        if len(set(bottoms)) > 1:
            self.fail(f"the three bottoms must be alike; they are {_told(bottoms)}")
        return {}


def _told(bottoms: Sequence[Shape]) -> str:
    return ", ".join(map(shape_text, bottoms))
