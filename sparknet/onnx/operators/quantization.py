"""QuantizeLinear and its kin: steps for a net of eight bits, or else a clip in float32."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from sparknet.onnx.netlist import Computed, Netlist
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_NARROW = (np.dtype(np.int8), np.dtype(np.uint8))
_FARTHEST = 16
"""Layers between a blob and the one that bounds its values."""


@reads("QuantizeLinear")
def quantize(step: Step) -> Outputs:
    scale, zero = _scale(step)
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    if kind.kind not in "iu":
        step.refuse("values are rounded to a type of which no layer knows")
    readers = step.readers_of(0)
    if not readers or not all(node.op == "DequantizeLinear" for node in readers):
        step.refuse("whole numbers are computed with, which no layer does")
    step.reading.scales[step.node.outputs[0]] = scale, _number(zero)
    bounds = np.iinfo(kind)
    ends = ((end - _number(zero)) * scale for end in (bounds.min, bounds.max))
    low, high = (float(np.float32(end)) for end in ends)  # as Clip has them
    rounded = _step_of(low, high)
    output = _clip(step, low, high, rounded if kind in _NARROW else None)
    if kind not in _NARROW:
        step.reading.unrounded.append(step.node.name)
        return output
    step.reading.rounded.append(step.node.name)
    if low != 0 and not np.isclose(rounded[0], scale):
        step.reading.coarser.append(step.node.name)
    step.reading.net.blobs[output.name].step = rounded
    return output


@reads("DequantizeLinear")
def dequantize(step: Step) -> Outputs:
    value = step.value(0)
    if not isinstance(value, Computed):
        step.refuse("the scale of a constant must be constant")
    scale, zero = _scale(step)
    factor = step.reading.scales.get(step.node.inputs[0])
    if factor is not None:
        if factor != (scale, _number(zero)):
            step.refuse("its scale is another than that of its QuantizeLinear")
        return value
    if not value.integral or value.rounded:
        step.refuse("it reads whole numbers, which no layer gives")
    return step.pointwise("Power", scale=scale, shift=-_number(zero) * scale)


def _scale(step: Step) -> tuple[float, Array | None]:
    scale, zero = step.constant(1, "the scale"), step.optional(2, "the zero point")
    if scale.size != 1 or (zero is not None and zero.size != 1):
        step.refuse("values that the model computes are quantised with one scale for all")
    number = float(np.ravel(scale)[0])
    if not isfinite(number) or number <= 0:
        step.refuse(f"its scale is {number:g}")
    return number, zero


def _number(zero: Array | None) -> float:
    return 0.0 if zero is None else float(np.ravel(zero)[0])


def _step_of(low: float, high: float) -> tuple[float, bool]:
    """Return the least step by which eight bits of sparknet, around 0, reach both ends."""
    return (high / 255, False) if low == 0 else (max(-low / 128, high / 127), True)


def _clip(step: Step, low: float, high: float, rounded: tuple[float, bool] | None) -> Computed:
    """Return the clipped value, by its own layer if others read it or it may be beyond."""
    value, net = step.value(0), step.reading.net
    assert isinstance(value, Computed)
    alone = step.reading.held[value.name] == 1 and net.blobs[value.name].step in (None, rounded)
    least, most = _reach(net, value.name, _FARTHEST)
    if alone and low <= least and most <= high:
        return value
    maker = step.maker(value)
    if low == 0 and maker is not None and maker.type == "ReLU" and not maker.options.negative_slope:
        value = net.blobs[maker.parameter.bottom[0]]
        net.remove(maker)
    return step.pointwise("Clip", of=value, min=low, max=high)


def _reach(net: Netlist, name: str, most: int) -> tuple[float, float]:
    """Between which numbers the values of a blob surely lie."""
    maker = net.makers.get(name)
    if maker is None or not most:
        return -inf, inf
    if maker.type == "Clip":
        return maker.options.min, maker.options.max
    if maker.type == "Softmax" or maker.type == "Sigmoid":
        return 0.0, 1.0
    ends = [_reach(net, bottom, most - 1) for bottom in maker.parameter.bottom]
    if maker.type == "ReLU" and not maker.options.negative_slope:
        return 0.0, ends[0][1]
    plan = maker.layer.plan([net.blobs[bottom].stored for bottom in maker.parameter.bottom])
    if ends and (maker.layer.is_view or maker.layer.passes_int8(plan)):
        return min(low for low, _ in ends), max(high for _, high in ends)
    return -inf, inf
