"""SmoothL1Loss: squared near zero, absolute beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sparknet.layers.layer import Plan, Shape, between, count, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.layers.loss import Loss, normalization


class SmoothL1Loss(Loss):
    """Of Fast R-CNN: divided by N; bottoms 2 and 3 are weights inside and outside the loss.

    R-FCN's and MATLAB's Faster R-CNN divide by places, too, and R-FCN's and Intel's follow
    loss_param.  Where theirs would be another number the layer is refused in TRAIN: give
    ``loss_param { normalization: BATCH_SIZE }`` for Fast R-CNN's, or ``dialect="rfcn"``.

    Top 1, of Cascade R-CNN's fork, is the loss of each place, N x 1 x H x W.
    Values: num, channels, inner, sigma2 (sigma squared), inside (bottom 2 given), outside (bottom 3
    given).
    """

    type = "SmoothL1Loss"
    field = "smooth_l1_loss_param"
    fields = ("loss_param",)
    bottoms = between(2, 4)
    tops = between(1, 2)
    unforced = (2, 3)

    def ambiguous(self, bottoms: Sequence[Shape]) -> str:
        mode = normalization(self.parameter.loss_param, "")
        spread = len(bottoms) == 3 and count(bottoms[0][2:]) > 1
        if mode == "batch_size" or not (mode or spread):
            return ""
        others = "R-FCN's (dialect=\"rfcn\") and MATLAB's Faster R-CNN's by N x H x W"
        if mode:
            others = f"R-FCN's (dialect=\"rfcn\") and Intel's follow normalization {mode.upper()}"
        return (
            "Fast R-CNN's divides by N (loss_param { normalization: BATCH_SIZE }), "
            f"{others} (or change loss_weight): Fast R-CNN's is taken"
        )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        plan = super().infer(bottoms)
        if len(self.parameter.top) < 2:
            return plan
        num, _, high, wide = legacy_shape(self, bottoms[0], "bottom 0")
        return replace(plan, tops=((), (num, 1, high, wide)))

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        for index, shape in enumerate(bottoms):
            if count(shape) != count(bottoms[0]):
                self.fail(
                    "all bottoms must have the same number of values; "
                    f"bottom 0 is {shape_text(bottoms[0])}, bottom {index} is {shape_text(shape)}"
                )
        return {
            "num": bottoms[0][0],
            "channels": count(bottoms[0][1:2]),
            "inner": count(bottoms[0][2:]),
            "sigma2": self.options.sigma**2,
            "inside": len(bottoms) > 2,
            "outside": len(bottoms) > 3,
        }
