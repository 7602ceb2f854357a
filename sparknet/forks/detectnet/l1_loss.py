"""L1Loss: absolute differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape
from sparknet.layers.loss import Loss, check_same_count


class L1Loss(Loss):
    """l1_loss_layer.cpp of NVIDIA's fork (DetectNet): their sum, divided by the number of items.

    Both bottoms may receive a gradient.  Values: num.
    """

    type = "L1Loss"
    unforced = ()

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_same_count(self, bottoms, start=1)
        return {"num": bottoms[0][0]}
