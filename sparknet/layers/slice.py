"""Slice: cut a blob into tops along an axis, evenly or at given points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparknet.layers.concat import legacy_axis
from sparknet.layers.layer import Layer, Plan, Shape, at_least


class Slice(Layer):
    """Caffe: slice_layer.cpp."""

    type = "Slice"
    stock = True
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
        """Where each piece starts, and the end."""
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
