"""Bias: add a learned or given blob, broadcast over the other axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sparknet.layers.layer import Layer, Plan, Shape, between, shape_text
from sparknet.layers.learnable import learnable


class Bias(Layer):
    """Caffe: bias_layer.cpp.  With one bottom the bias is learned."""

    type = "Bias"
    stock = True
    field = "bias_param"
    bottoms = between(1, 2)
    in_place = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis, shape = broadcast(self, bottoms, "bias")
        params = (learnable(self, shape, self.options.filler),) if len(bottoms) == 1 else ()
        return Plan((bottoms[0],), params, {"axis": axis, "num_axes": len(shape)})


def broadcast(layer: Layer, bottoms: Sequence[Shape], what: str) -> tuple[int, Shape]:
    """Where the small operand of Bias or Scale starts, and its shape; a scalar starts at 0."""
    options = layer.options
    bottom = bottoms[0]
    if len(bottoms) == 1:
        axis = layer.axis(options.axis, bottom)
        shape = _learned(layer, bottom, axis, what)
    else:
        shape = bottoms[1]
        axis = layer.axis(options.axis, bottom) if shape else 0
    if axis + len(shape) > len(bottom):
        _fail_past_end(layer, bottom, axis, len(shape), what)
    if bottom[axis : axis + len(shape)] != shape:
        layer.fail(
            f"the {what} blob {shape_text(shape)} does not match the input "
            f"{shape_text(bottom)} from axis {axis} on"
        )
    return (axis if shape else 0), shape


def _learned(layer: Layer, bottom: Shape, axis: int, what: str) -> Shape:
    axes = layer.options.num_axes
    if axes < -1:
        layer.fail(f"num_axes must be at least 0, or -1 for all that follow; it is {axes}")
    if axis + axes > len(bottom):
        _fail_past_end(layer, bottom, axis, axes, what)
    return bottom[axis:] if axes == -1 else bottom[axis : axis + axes]


def _fail_past_end(layer: Layer, bottom: Shape, axis: int, axes: int, what: str) -> NoReturn:
    layer.fail(f"{axes} {what} axes from axis {axis} on reach past the input {shape_text(bottom)}")
