"""SmoothL1Loss: squared near zero, absolute beyond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape, between, count, shape_text
from sparknet.layers.loss import Loss


class SmoothL1Loss(Loss):
    """Of Fast R-CNN; bottoms 2 and 3 are weights inside and outside the loss.

    Values: num, sigma2 (sigma squared), inside (bottom 2 given), outside (bottom 3 given).
    """

    type = "SmoothL1Loss"
    field = "smooth_l1_loss_param"
    bottoms = between(2, 4)

    def force_backward(self, bottom: int) -> bool:
        return bottom < 2

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        for index, shape in enumerate(bottoms):
            if count(shape) != count(bottoms[0]):
                self.fail(
                    "all bottoms must have the same number of values; "
                    f"bottom 0 is {shape_text(bottoms[0])}, bottom {index} is {shape_text(shape)}"
                )
        return {
            "num": bottoms[0][0],
            "sigma2": self.options.sigma**2,
            "inside": len(bottoms) > 2,
            "outside": len(bottoms) > 3,
        }
