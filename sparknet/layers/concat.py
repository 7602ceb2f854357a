"""Concat: bottoms one after the other along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, shape_text


class Concat(Layer):
    """Caffe: concat_layer.cpp."""

    type = "Concat"
    stock = True
    field = "concat_param"
    bottoms = at_least(1)

    def passes_int8(self, plan: Plan) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        first = bottoms[0]
        axis = legacy_axis(self, "concat_dim", first)
        for index, shape in enumerate(bottoms):
            same = len(shape) == len(first) and all(
                at == axis or size == first[at] for at, size in enumerate(shape)
            )
            if not same:
                self.fail(
                    f"bottoms may differ in axis {axis} only; bottom 0 is {shape_text(first)}, "
                    f"bottom {index} is {shape_text(shape)}"
                )
        total = sum(shape[axis] for shape in bottoms)
        return Plan(((*first[:axis], total, *first[axis + 1 :]),), values={"axis": axis})


def legacy_axis(layer: Layer, legacy: str, shape: Shape) -> int:
    """The axis of Concat and Slice: ``axis``, or the older field that counts from 0."""
    options = layer.options
    if not options.HasField(legacy):
        return layer.axis(options.axis, shape)
    if options.HasField("axis"):
        layer.fail(f"give axis or {legacy}, not both")
    return layer.axis(getattr(options, legacy), shape, legacy)
