"""Comparisons, whose results are 0 and 1, and what is chosen by them."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.limits import bounded
from sparknet.onnx.netlist import LARGEST, Computed, Value
from sparknet.onnx.operators.binary import combine
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads


@reads("Greater", "Less", "GreaterOrEqual", "LessOrEqual")
def ordered(step: Step) -> Outputs:
    """Compare by the sign of the difference; "not below" is the reverse of "below"."""
    a, b = step.value(0), step.value(1)
    either = step.op.endswith("OrEqual")
    if step.op.startswith("Less") != either:
        a, b = b, a
    return _above(step, a, b, None if not either else "reverse", either)


def _above(step: Step, a: Value, b: Value, part: str | None, turned: bool) -> Value:
    if (
        isinstance(a, Computed)
        and not isinstance(b, Computed)
        and b.size == 1
        and b.ndim <= len(a.shape)
    ):
        limit, x = float(np.ravel(b)[0]), a
    else:
        difference = combine(step, "Sub", a, b, part="difference")
        assert isinstance(difference, Computed)
        limit, x = 0.0, difference
    output = step.pointwise("Threshold", of=x, part=part, threshold=limit)
    return _logical(_reversed(step, output, None) if turned else output)


def _logical(blob: Computed) -> Computed:
    blob.dtype = np.dtype(bool)
    return blob


def _reversed(step: Step, x: Value, part: str | None) -> Computed:
    return _logical(step.pointwise("Power", of=x, part=part, scale=-1.0, shift=1.0))


@reads("Equal")
def equal(step: Step) -> Outputs:
    a, b = step.value(0), step.value(1)
    if step.node.inputs[0] == step.node.inputs[1]:
        step.refuse("it looks for what is not a number, which no layer does")
    for x, limit in ((a, b), (b, a)):
        if isinstance(x, Computed) and not isinstance(limit, Computed) and np.all(np.isinf(limit)):
            return _is_infinite(step, x, limit)
    difference = combine(step, "Sub", a, b, part="difference")
    return _reversed(step, differs(step, difference, "differs"), None)


def _is_infinite(step: Step, x: Computed, limit: Array) -> Value:
    """Infinite numbers may have become the largest ones, in a maximum or a Clip."""
    if limit.size != 1:
        step.refuse("it compares with several infinite numbers")
    if float(np.ravel(limit)[0]) < 0:
        return _above(step, x, np.float32(-LARGEST), "above", True)
    return _above(step, x, np.nextafter(np.float32(LARGEST), np.float32(0)), None, False)


def differs(step: Step, x: Value, part: str | None) -> Computed:
    """Return whether a value is not 0."""
    size = step.pointwise("AbsVal", of=x, part="size")
    return _logical(step.pointwise("Threshold", of=size, part=part, threshold=0.0))


@reads("IsNaN")
def is_nan(step: Step) -> Outputs:
    """Use that no NaN's size is above -1."""
    size = step.pointwise("AbsVal", part="size")
    number = step.pointwise("Threshold", of=size, part="number", threshold=-1.0)
    return _reversed(step, number, None)


@reads("Not")
def not_(step: Step) -> Outputs:
    return _reversed(step, step.value(0), None)


@reads("And", "Or", "Xor")
def both(step: Step) -> Outputs:
    a, b = step.value(0), step.value(1)
    if step.op == "Xor":
        return differs(step, combine(step, "Sub", a, b, part="difference"), None)
    output = combine(step, "Mul" if step.op == "And" else "Max", _numbers(a), _numbers(b))
    return _logical(output) if isinstance(output, Computed) else output


def _numbers(value: Value) -> Value:
    return value if isinstance(value, Computed) else value.astype(np.float32)


@reads("Sign")
def sign(step: Step) -> Outputs:
    above = step.pointwise("Threshold", part="above", threshold=0.0)
    turned = step.pointwise("Power", part="negative", scale=-1.0)
    below = step.pointwise("Threshold", of=turned, part="below", threshold=0.0)
    return combine(step, "Sub", above, below)


@reads("Where")
def where(step: Step) -> Outputs:
    """Return a choice; of two finite constants c · a + (1 - c) · b, by layers of stock Caffe."""
    condition, a, b = step.value(0), step.value(1), step.value(2)
    if (
        isinstance(a, Computed)
        or isinstance(b, Computed)
        or not np.isfinite([*map(_most, (a, b))]).all()
    ):
        values = [condition, a, b]
        bottoms = [step.plain(x if isinstance(x, Computed) else step.unbatched(x)) for x in values]
        return step.layer("Where", bottoms)
    first = combine(step, "Mul", condition, _numbers(a), "first")
    other = _reversed(step, condition, "otherwise")
    return combine(step, "Add", first, combine(step, "Mul", other, _numbers(b), "second"))


def _most(array: Array) -> float:
    with np.errstate(over="ignore"):
        return float(np.abs(array.astype(np.float32)).max(initial=0))


@reads("Trilu")
def triangle(step: Step) -> Outputs:
    """Return the values of one half of each matrix, and zeros."""
    value = step.value(0)
    if len(value.shape) < 2:
        step.refuse(f"takes matrices, not {list(value.shape)}")
    if step.is_batched(value.shape[-2:]):
        step.refuse("it takes a triangle of the records, of which there may be any number")
    above = int(np.ravel(step.constant(1, "the diagonal"))[0]) if step.has(1) else 0
    half = np.triu if step.attribute("upper", 1) else np.tril
    height, width = bounded(value.shape[-2:])
    above = max(-height, min(width, above))
    return combine(step, "Mul", value, half(np.ones((height, width), np.float32), above))
