"""BatchGather: values at places that another blob holds for each record."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text


class BatchGather(Layer):
    """top[i, j, …] = bottom[i, places[i, j], …], where i are the axes before ``axis``, the same in
    both bottoms, and j are the others of the places.

    Places below 0 count from the end.  They have no gradient.
    """

    type = "BatchGather"
    field = "batch_gather_param"
    bottoms = exactly(2)
    unforced = (1,)

    def takes(self, bottom: int) -> str:
        return "indices" if bottom else "numbers"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom, places = bottoms
        axis = self.axis(self.options.axis, bottom)
        if places[:axis] != bottom[:axis]:
            self.fail(
                f"the places {shape_text(places)} have other axes before axis {axis} than "
                f"{shape_text(bottom)}"
            )
        return Plan((places + bottom[axis + 1 :],), values={"axis": axis})

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis == self.axis(self.options.axis, bottom)
