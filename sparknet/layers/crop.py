"""Crop: the part of the first bottom that has the second one's size."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text


class Crop(Layer):
    """Caffe: crop_layer.cpp; without offset it cuts at 0.

    ``align`` is HED's, crfasrnn's and DeconvNet's (``dialect="hed"``): the offset lays the first
    bottom upon the second, as the layers that both come from have moved them.
    """

    type = "Crop"
    stock = True
    field = "crop_param"
    bottoms = exactly(2)

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis >= self.axis(self.options.axis, bottom)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        whole, wanted = bottoms
        axis = self.axis(self.options.axis, whole)
        cropped = len(whole) - axis
        given = tuple(self.options.offset)
        if len(given) > 1 and len(given) != cropped:
            self.fail(
                f"offset must be given once, or once for each of the {cropped} axes from "
                f"axis {axis} on; it is given {len(given)} times"
            )
        if len(wanted) < len(whole):
            self.fail(
                f"the size bottom {shape_text(wanted)} has fewer axes than {shape_text(whole)}"
            )
        offsets = given if len(given) > 1 else (given or (0,)) * cropped
        for index, offset in enumerate(offsets, axis):
            if whole[index] - offset < wanted[index]:
                self.fail(
                    f"the crop of axis {index} is out of bounds: offset {offset} and size "
                    f"{wanted[index]} in {whole[index]}"
                )
        top = (*whole[:axis], *wanted[axis : len(whole)])
        return Plan((top,), values={"axis": axis, "offset": (0,) * axis + offsets})
