"""Split: hand one blob to several users; their gradients add up."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least


class Split(Layer):
    """Caffe: split_layer.cpp."""

    type = "Split"
    stock = True
    is_view = splits = True
    tops = at_least(1)

    def passes_int8(self, plan: Plan) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return Plan((bottoms[0],) * len(self.parameter.top))
