"""Types of values, and the operators that treat them alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.onnx.netlist import FLOAT, Computed, Value
from sparknet.onnx.source import Array, OnnxNode

WRAPPING = ("Abs", "Add", "Mul", "Neg", "Pow", "ReduceSum", "Sub", "Sum")
ROUNDING = ("Mean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")
PICKING = ("Gather", "GatherND")
"""Operators whose other inputs are places."""
SPREADING = (
    *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max"),
    *("Mean", "Min", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"),
)
"""Operators that spread their inputs over each other."""
CHOOSING = ("Where",)
"""Operators whose first input is not of the result's type."""
CHANGING = ("Cast", "CastLike", "DequantizeLinear")
"""Operators that say themselves of which type the result is."""
FILLING = ("ConstantOfShape", "Range")
"""Operators that make constants from sizes."""
WITH_SIZES = (
    *("Add", "Cast", "Concat", "Div", "Expand", "Flatten", "Gather", "Identity", "Mod", "Mul"),
    *("Neg", "ReduceProd", "Reshape", "Slice", "Split", "Squeeze", "Sub", "Tile", "Transpose"),
    *("Unsqueeze", "Where"),
)
"""Operators that compute whole numbers with sizes."""
MOST_SIZES = 32
"""Sizes of a shape."""
MOVING = (
    *("CumSum", "GatherElements"),
    *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherND", "Identity", "Pad"),
    *("Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
)


def result_type(node: OnnxNode, inputs: Sequence[Value | None]) -> np.dtype[Any]:
    """Return the type of what an operator gives, unless its converter knows better."""
    values = inputs[1:] if node.op in CHOOSING else inputs
    kind = next((one.dtype for one in values if one is not None), FLOAT)
    return kind if kind.kind in "iub" and node.op not in CHANGING else FLOAT


def constant_type(array: Array) -> np.dtype[Any]:
    return array.dtype if array.dtype.kind in "iub" else FLOAT


def is_whole(value: Value | None) -> bool:
    if value is None or isinstance(value, Computed):
        return value is None or value.integral
    return bool(np.all(value == np.trunc(value)))


def set_type(blob: Computed, kind: np.dtype[Any], integral: bool = False) -> Computed:
    """Return the blob, whose type a converter has given or else its node's rule."""
    if blob.dtype == FLOAT:
        blob.dtype = kind
    blob.integral = blob.integral or integral or blob.dtype.kind in "iub"
    return blob
