"""Reduction, CumSum and ArgMax: sums and maxima along axes."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.activations import around
from sparknet.layers.layer import Layer, Plan, Shape, count, layer


@layer("Reduction", stock=True)
class Reduction(Layer):
    """A sum, mean, sum of magnitudes or of squares over the last axes.

    Caffe: reduction_layer.cpp."""

    field = "reduction_param"
    plain_options = ("operation", "coeff")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis = self.axis(self.options.axis, bottoms[0])
        return Plan((bottoms[0][:axis],), values={"axis": axis})


@layer("CumSum")
class CumSum(Layer):
    """With ``exclusive`` a value is left out of its own sum; with ``reverse`` sums begin at the
    end."""

    field = "cum_sum_param"
    plain_options = ("exclusive", "reverse")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        return Plan((bottoms[0],), values={"axis": self.axis(options.axis, bottoms[0])})

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis == self.axis(self.options.axis, bottom)


@layer("ArgMax", stock=True)
class ArgMax(Layer):
    """The top_k places (or values) along an axis or in each item (Caffe: argmax_layer.cpp)."""

    field = "argmax_param"
    has_gradient = False
    plain_options = ("top_k", "out_max_val")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options, shape = self.options, bottoms[0]
        if options.HasField("axis"):
            axis = self.axis(options.axis, shape)
            values: dict[str, int | None] = {**around(shape, axis)}
            top = (*shape[:axis], options.top_k, *shape[axis + 1 :])
        else:
            if not shape:
                self.fail("the bottom needs at least 1 axis; it is a scalar")
            values = {"axis": None, "outer": shape[0], "channels": count(shape[1:]), "inner": 1}
            top = self._whole_item(shape)
        choices = values["channels"]
        if not 1 <= options.top_k <= (choices or 0):
            self.fail(f"top_k {options.top_k} must be from 1 to the number of values, {choices}")
        values |= {}
        return Plan(tops=(top,), values=values)

    def _whole_item(self, shape: Shape) -> Shape:
        pair = 2 if self.options.out_max_val else 1
        ones = (1,) * (max(len(shape), 3) - 3)
        return (shape[0], pair, self.options.top_k, *ones)
