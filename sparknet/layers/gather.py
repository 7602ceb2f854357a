"""Gather: the values at given places of an axis."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape


class Gather(Layer):
    """Place i of the top's axis is place index[i] of the bottom's; places may repeat.

    Negative places count from the end, however long the axis is.
    """

    type = "Gather"
    field = "gather_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom, index = bottoms[0], tuple(self.options.index)
        axis = self.axis(self.options.axis, bottom)
        if not index:
            self.fail("index is empty: name at least one place")
        for place in index:
            if not -bottom[axis] <= place < bottom[axis]:
                self.fail(f"index {place} is out of range for axis {axis} of size {bottom[axis]}")
        top = (*bottom[:axis], len(index), *bottom[axis + 1 :])
        places = tuple(place % bottom[axis] for place in index)
        return Plan((top,), values={"axis": axis, "index": places})

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis == self.axis(self.options.axis, bottom)
