"""Scale, Bias and Axpy: factors and terms, spread over the other axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sparknet.layers.fillers import constant, learnable
from sparknet.layers.layer import Layer, Param, Plan, Shape, between, exactly, layer, shape_text


@layer("Bias", stock=True)
class Bias(Layer):
    """Add a learned or given blob, broadcast over the other axes (Caffe: bias_layer.cpp).

    With one bottom the bias is learned."""

    field = "bias_param"
    bottoms = between(1, 2)
    works_in_place = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis, shape = broadcast(self, bottoms, "bias")
        params = (learnable(self, shape, self.options.filler),) if len(bottoms) == 1 else ()
        return Plan((bottoms[0],), params, {"axis": axis, "num_axes": len(shape)})


def broadcast(layer: Layer, bottoms: Sequence[Shape], what: str) -> tuple[int, Shape]:
    """Return the axis where the small operand of Bias or Scale starts, and its shape."""
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


@layer("Scale", stock=True)
class Scale(Layer):
    """Multiply by a learned or given blob, broadcast over the other axes.

    Caffe: scale_layer.cpp.  With one bottom the factors are learned.

    ``bias_term`` adds a learned bias of the factors' shape, the last parameter."""

    field = "scale_param"
    accepts_int8 = True
    bottoms = between(1, 2)
    works_in_place = True
    plain_options = ("bias_term",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        axis, shape = broadcast(self, bottoms, "scale")
        filler = options.filler if options.HasField("filler") else constant(1)
        params: tuple[Param, ...] = ()
        if len(bottoms) == 1:
            params = (learnable(self, shape, filler),)
        if options.bias_term:
            params += (learnable(self, shape, options.bias_filler),)
        values = {"axis": axis, "num_axes": len(shape)}
        return Plan((bottoms[0],), params, values)


@layer("Axpy")
class Axpy(Layer):
    """axpy_layer.cpp of SENet.  Bottoms: scale (N, C) or (N, C, 1, 1), x and y."""

    bottoms = exactly(3)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        scale, x, y = bottoms
        if x != y:
            self.fail(f"x {shape_text(x)} and y {shape_text(y)} must have one shape")
        if len(x) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); x is {shape_text(x)}")
        if scale not in (x[:2], (*x[:2], 1, 1)):
            self.fail(
                f"the scale {shape_text(scale)} must have one value for each of the "
                f"{shape_text(x[:2])} channels of x"
            )
        return Plan((x,))
