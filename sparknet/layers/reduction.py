"""Reduction: a sum, mean, sum of magnitudes or of squares over the last axes."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape


class Reduction(Layer):
    """Caffe: reduction_layer.cpp."""

    type = "Reduction"
    stock = True
    field = "reduction_param"
    copied = ("operation", "coeff")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis = self.axis(self.options.axis, bottoms[0])
        values = {"axis": axis}
        return Plan((bottoms[0][:axis],), values=values)
