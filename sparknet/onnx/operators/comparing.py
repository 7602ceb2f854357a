"""Comparisons, whose results are 0 and 1, and what is chosen by them."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.limits import bounded
from sparknet.onnx.netlist import Blob, Value
from sparknet.onnx.operators.activations import LARGEST, pointwise
from sparknet.onnx.operators.arithmetic import combine
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads


@reads("Greater", "Less", "GreaterOrEqual", "LessOrEqual")
def ordered(step: Step) -> Outputs:
    """One is above the other if their difference is above 0; not below is the reverse of below."""
    a, b = step.value(0), step.value(1)
    either = step.op.endswith("OrEqual")
    if step.op.startswith("Less") != either:
        a, b = b, a
    return _above(step, a, b, None if not either else "reverse", either)


def _above(step: Step, a: Value, b: Value, part: str | None, turned: bool) -> Value:
    if isinstance(a, Blob) and not isinstance(b, Blob) and b.size == 1:
        limit, x = float(np.ravel(b)[0]), a
    else:
        difference = combine(step, "Sub", a, b, part="difference")
        assert isinstance(difference, Blob)
        limit, x = 0.0, difference
    made = pointwise(step, "Threshold", of=x, part=part, threshold=limit)
    return _logical(_reversed(step, made, None) if turned else made)


def _logical(made: Blob) -> Blob:
    made.integral = True
    return made


def _reversed(step: Step, x: Value, part: str | None) -> Blob:
    return _logical(pointwise(step, "Power", of=x, part=part, scale=-1.0, shift=1.0))


@reads("Equal")
def equal(step: Step) -> Outputs:
    a, b = step.value(0), step.value(1)
    for x, limit in ((a, b), (b, a)):
        if isinstance(x, Blob) and not isinstance(limit, Blob) and np.all(np.isinf(limit)):
            return _is_infinite(step, x, limit)
    difference = combine(step, "Sub", a, b, part="difference")
    return _reversed(step, differs(step, difference, "differs"), None)


def _is_infinite(step: Step, x: Blob, limit: Array) -> Value:
    """Infinite numbers are the largest ones here."""
    if limit.size != 1:
        step.refuse("it compares with several infinite numbers")
    below = float(np.ravel(limit)[0]) < 0
    bound = np.float32(-LARGEST / 2 if below else LARGEST / 2)
    return _above(step, x, bound, "above" if below else None, below)


def differs(step: Step, x: Value, part: str | None) -> Blob:
    """Whether a value is not 0."""
    size = pointwise(step, "AbsVal", of=x, part="size")
    return _logical(pointwise(step, "Threshold", of=size, part=part, threshold=0.0))


@reads("Not")
def not_(step: Step) -> Outputs:
    return _reversed(step, step.value(0), None)


@reads("And", "Or", "Xor")
def both(step: Step) -> Outputs:
    a, b = step.value(0), step.value(1)
    if step.op == "Xor":
        return differs(step, combine(step, "Sub", a, b, part="difference"), None)
    made = combine(step, "Mul" if step.op == "And" else "Max", _numbers(a), _numbers(b))
    return _logical(made) if isinstance(made, Blob) else made


def _numbers(value: Value) -> Value:
    return value if isinstance(value, Blob) else value.astype(np.float32)


@reads("Sign")
def sign(step: Step) -> Outputs:
    above = pointwise(step, "Threshold", part="above", threshold=0.0)
    turned = pointwise(step, "Power", part="negative", scale=-1.0)
    below = pointwise(step, "Threshold", of=turned, part="below", threshold=0.0)
    return combine(step, "Sub", above, below)


@reads("Where")
def where(step: Step) -> Outputs:
    """c · a + (1 - c) · b; infinite constants become the largest numbers, as 0 times them is 0."""
    condition, a, b = step.value(0), step.value(1), step.value(2)
    if isinstance(condition, Blob):
        other: Value = _reversed(step, condition, "otherwise")
    else:
        condition = condition.astype(np.float32)
        other = 1 - condition
    first = _share(step, condition, a, "first")
    second = _share(step, other, b, "second")
    return combine(step, "Add", first, second)


def _share(step: Step, condition: Value, value: Value, part: str) -> Value:
    if not isinstance(value, Blob):
        value = np.clip(value.astype(np.float32), -LARGEST, LARGEST)
        if not isinstance(condition, Blob):
            return np.asarray(condition * value)
    return combine(step, "Mul", value, condition, part=part)


@reads("Trilu")
def triangle(step: Step) -> Outputs:
    """The values of one half of each matrix, and zeros."""
    value = step.value(0)
    if len(value.shape) < 2:
        step.refuse(f"takes matrices, not {list(value.shape)}")
    above = int(np.ravel(step.constant(1, "the diagonal"))[0]) if step.has(1) else 0
    half = np.triu if step.attribute("upper", 1) else np.tril
    height, width = bounded(value.shape[-2:])
    above = max(-height, min(width, above))
    return combine(step, "Mul", value, half(np.ones((height, width), np.float32), above))
