"""Softmax: values along one axis turned into probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sparknet.layers.layer import Layer, Plan, Shape, count


def around(shape: Shape, axis: int) -> dict[str, int]:
    """A shape seen from one axis: values before it, on it and after it."""
    return {
        "axis": axis,
        "outer": count(shape[:axis]),
        "channels": shape[axis],
        "inner": count(shape[axis + 1 :]),
    }


class Softmax(Layer):
    """Caffe: softmax_layer.cpp.  Values: axis, outer, channels, inner."""

    type = "Softmax"
    stock = True
    squashes: ClassVar[str | None] = "softmax"
    field = "softmax_param"
    in_place = True

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return self.axis(self.options.axis, bottom) == axis

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis = self.axis(self.options.axis, bottoms[0])
        return Plan(tops=(bottoms[0],), values=around(bottoms[0], axis))
