"""Permute: the axes in another order."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, shape_text


class Permute(Layer):
    """permute_layer.cpp of SSD.  Axes that ``order`` leaves out follow in their old order."""

    type = "Permute"
    field = "permute_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        given = tuple(self.options.order)
        for axis in given:
            if axis >= len(bottom):
                self.fail(f"order {axis} is out of range for the shape {shape_text(bottom)}")
        if len(set(given)) < len(given):
            self.fail(f"order names an axis twice: {list(given)}")
        order = given + tuple(axis for axis in range(len(bottom)) if axis not in given)
        return Plan((tuple(bottom[axis] for axis in order),), values={"order": order})
