"""CumSum: the sum of each value and those before it along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape


class CumSum(Layer):
    """With ``exclusive`` a value is left out of its own sum; with ``reverse`` sums begin at the
    end."""

    type = "CumSum"
    field = "cum_sum_param"
    copied = ("exclusive", "reverse")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        values = {"axis": self.axis(options.axis, bottoms[0])}
        return Plan((bottoms[0],), values=values)

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis == self.axis(self.options.axis, bottom)
