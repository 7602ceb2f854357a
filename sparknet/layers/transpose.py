"""Transpose: the axes in another order."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape


class Transpose(Layer):
    """transpose_layer.cpp of CTPN's Caffe: axis i of the top is axis dim[i] of the bottom.

    Values: order.
    """

    type = "Transpose"
    field = "transpose_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        (bottom,) = bottoms
        order = tuple(self.options.dim)
        if sorted(order) != list(range(len(bottom))):
            self.fail(
                f"dim must name each of the {len(bottom)} axes of the bottom once; "
                f"it is {list(order)}"
            )
        return Plan((tuple(bottom[axis] for axis in order),), values={"order": order})
