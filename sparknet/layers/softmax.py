"""Softmax and LogSoftmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sparknet.layers.layer import Layer, Plan, Shape, count, layer


def around(shape: Shape, axis: int) -> dict[str, int]:
    """Return a shape seen from one axis: values before it, on it and after it."""
    return {
        "axis": axis,
        "outer": count(shape[:axis]),
        "channels": shape[axis],
        "inner": count(shape[axis + 1 :]),
    }


@layer("Softmax", stock=True)
class Softmax(Layer):
    """Values along one axis turned into probabilities (Caffe: softmax_layer.cpp).

    Values: axis, outer, channels, inner."""

    score_function: ClassVar[str | None] = "softmax"
    field = "softmax_param"
    works_in_place = True

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return self.axis(self.options.axis, bottom) == axis

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis = self.axis(self.options.axis, bottoms[0])
        return Plan(tops=(bottoms[0],), values=around(bottoms[0], axis))


@layer("LogSoftmax")
class LogSoftmax(Softmax):
    """y = x - max(x) - log(sum(exp(x - max(x)))) along the axis, of which Caffe's Softmax and Log
    make -inf where x is more than 87 below the largest value."""

    score_function = None
