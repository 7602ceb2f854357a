"""ScaleRoute: the boxes of a range of sizes, for one level of a feature pyramid."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class ScaleRoute(Layer):
    """scale_route_layer.cpp of Cascade R-CNN; bottoms: boxes (N x 5), and anything that has a row
    for each box.

    Each bottom has a top with the rows whose box has a scale (the root of its area) from low_scale
    to below high_scale; where there is none, the box of the scale nearest to the middle.  Their
    number is known only in the forward pass.  Values: low, high, middle.
    """

    type = "ScaleRoute"
    field = "scale_route_param"
    bottoms = at_least(1)
    tops = at_least(1)
    equal_counts = True
    gradient = False
    reshapes = True
    labelled = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        low = options.low_scale if options.HasField("low_scale") else 0.0
        high = options.high_scale if options.HasField("high_scale") else math.inf
        if not 0 <= low <= high or (options.HasField("low_scale") and low == 0):
            self.fail(f"needs a low_scale above 0 and at most high_scale; they are {low}, {high}")
        shapes = [legacy_shape(self, shape, "a bottom") for shape in bottoms]
        for number, shape in enumerate(shapes):
            if shape[0] != shapes[0][0] or (number == 0 and shape[1:] != (5, 1, 1)):
                self.fail(
                    "takes N x 5 boxes, and N rows of what else there is; "
                    f"bottom {number} is {shape_text(bottoms[number])}"
                )
        values = {"low": low, "high": high, "middle": _middle(low, high)}
        return Plan(tuple((1, *shape[1:]) for shape in shapes), values=values)


def _middle(low: float, high: float) -> float:
    if low and high < math.inf:
        return math.sqrt(low * high)
    if low:
        return low
    return high if high < math.inf else 256.0
