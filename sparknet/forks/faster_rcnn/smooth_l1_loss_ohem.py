"""SmoothL1LossOHEM: smooth L1 that also gives the loss of each region."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, between, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.layers.loss import Loss, normalizing


class SmoothL1LossOHEM(Loss):
    """smooth_L1_loss_ohem_layer.cpp of R-FCN; bottom 2 holds weights inside the loss.

    Top 1 is the loss of each place.  As there, the weights are in the error but not once more in
    the gradient.  Values: outer, channels, inner, normalization (default "valid").
    """

    type = "SmoothL1LossOHEM"
    fields = ("loss_param",)
    bottoms = between(2, 3)
    tops = between(1, 2)
    unforced = (2,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        shapes = [legacy_shape(self, shape, "the input") for shape in bottoms]
        for index, shape in enumerate(shapes):
            if shape != shapes[0]:
                self.fail(
                    f"all bottoms must have one shape; bottom 0 is {shape_text(bottoms[0])}, "
                    f"bottom {index} is {shape_text(bottoms[index])}"
                )
        outer, channels, high, wide = shapes[0]
        values = {
            "outer": outer,
            "channels": channels,
            "inner": high * wide,
            **normalizing(self.parameter.loss_param, default="valid"),
        }
        each = ((outer, 1, high, wide),) if len(self.parameter.top) > 1 else ()
        return Plan(((), *each), values=values)
