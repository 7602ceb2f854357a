"""Reverse: one axis from its end to its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count


class Reverse(Layer):
    """reverse_layer.cpp of CTPN's Caffe.  Values: outer, many (places of the axis), inner."""

    type = "Reverse"
    field = "reverse_param"

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return self.axis(self.options.axis, bottom) == axis

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        (bottom,) = bottoms
        axis = self.axis(self.options.axis, bottom)
        values = {
            "outer": count(bottom[:axis]),
            "many": bottom[axis],
            "inner": count(bottom[axis + 1 :]),
        }
        return Plan((tuple(bottom),), values=values)
