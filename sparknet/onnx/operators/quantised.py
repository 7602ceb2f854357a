"""Whole numbers with a scale: the net computes with what they stand for."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.netlist import Blob
from sparknet.onnx.operators.activations import pointwise
from sparknet.onnx.step import Outputs, Step, reads


@reads("QuantizeLinear")
def quantize(step: Step) -> Outputs:
    """Only cuts off what the whole numbers cannot hold; DequantizeLinear does nothing then."""
    scale, zero = step.constant(1, "the scale"), step.optional(2, "the zero point")
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    if scale.size != 1 or kind.kind not in "iu":
        step.refuse("values that the model computes are quantised with one scale for all")
    readers = step.readers_of(0)
    if not readers or not all(node.op == "DequantizeLinear" for node in readers):
        step.refuse("whole numbers are computed with, which no layer does")
    bounds, middle = np.iinfo(kind), 0.0 if zero is None else float(np.ravel(zero)[0])
    low, high = ((end - middle) * float(np.ravel(scale)[0]) for end in (bounds.min, bounds.max))
    step.reading.unrounded.append(step.node.name)
    return pointwise(step, "Clip", min=low, max=high)


@reads("DequantizeLinear")
def dequantize(step: Step) -> Outputs:
    value = step.value(0)
    if not isinstance(value, Blob) or value.integral:
        step.refuse("it reads whole numbers, which no layer gives")
    return value
