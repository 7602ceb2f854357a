"""Concat, Slice, Split and Silence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparknet.layers.layer import Layer, Plan, Shape, at_least, exactly, layer, shape_text


@layer("Concat", stock=True)
class Concat(Layer):
    """Bottoms one after the other along an axis (Caffe: concat_layer.cpp)."""

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
    """Return the axis of Concat and Slice: ``axis``, or the older field that counts from 0."""
    options = layer.options
    if not options.HasField(legacy):
        return layer.axis(options.axis, shape)
    if options.HasField("axis"):
        layer.fail(f"give axis or {legacy}, not both")
    return layer.axis(getattr(options, legacy), shape, legacy)


@layer("Slice", stock=True)
class Slice(Layer):
    """Cut a blob into tops along an axis, evenly or at given points (Caffe: slice_layer.cpp)."""

    field = "slice_param"
    tops = at_least(1)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        axis = legacy_axis(self, "slice_dim", bottom)
        bounds = self._bounds(bottom[axis])
        tops = tuple(
            (*bottom[:axis], end - start, *bottom[axis + 1 :]) for start, end in pairwise(bounds)
        )
        return Plan(tops, values={"axis": axis, "bounds": bounds})

    def _bounds(self, size: int) -> tuple[int, ...]:
        """Return where each piece starts, and the end."""
        points = tuple(self.options.slice_point)
        tops = len(self.parameter.top)
        if not points:
            if size % tops:
                self.fail(f"{tops} tops do not divide the axis of size {size} evenly")
            return tuple(index * (size // tops) for index in range(tops + 1))
        if len(points) != tops - 1:
            self.fail(f"{tops} tops need {tops - 1} slice points; {len(points)} are given")
        bounds = (0, *points, size)
        rising = all(start < end for start, end in zip(bounds, points, strict=False))
        if not rising or points[-1] > size or tops > size:
            self.fail(f"slice points must rise from 1 to at most {size}; they are {list(points)}")
        return bounds


@layer("Split", stock=True)
class Split(Layer):
    """Hand one blob to several users; their gradients add up (Caffe: split_layer.cpp)."""

    is_view = is_split = True
    tops = at_least(1)

    def passes_int8(self, plan: Plan) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return Plan((bottoms[0],) * len(self.parameter.top))


@layer("Silence", stock=True)
class Silence(Layer):
    """Keeps its bottoms from becoming net outputs (Caffe: silence_layer.cpp)."""

    is_view = True
    bottoms = at_least(1)
    tops = exactly(0)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return Plan(tops=())
