"""Operators that map each value to one value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sparknet.onnx.folding import TYPES
from sparknet.onnx.netlist import FLOAT, Computed, Value
from sparknet.onnx.step import Outputs, Step, reads

LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)


def pointwise(step: Step, type_name: str, *, of: Value | None = None, **options: Any) -> Computed:
    """A layer that does not care in which order the axes lie."""
    value = step.value(0) if of is None else of
    if isinstance(value, Computed) and value.order is not None and value.pads is None:
        made = step.layer(type_name, [Computed(value.name, value.stored)], **options)
        return Computed(made.name, made.stored, value.order)
    return step.layer(type_name, [step.plain(value)], **options)


_PLAIN = {
    "Abs": "AbsVal",
    "Exp": "Exp",
    "Log": "Log",
    "Relu": "ReLU",
    "Sigmoid": "Sigmoid",
    "Softplus": "BNLL",
    "Tanh": "TanH",
}
_POWERS: dict[str, dict[str, Any]] = {
    "Neg": {"scale": -1.0},
    "Reciprocal": {"power": -1.0},
    "Sqrt": {"power": 0.5},
}


@reads(*_PLAIN)
def plain(step: Step) -> Outputs:
    return pointwise(step, _PLAIN[step.op])


@reads(*_POWERS)
def power(step: Step) -> Outputs:
    return pointwise(step, "Power", **_POWERS[step.op])


@reads("Floor", "Ceil", "Round", "Sin", "Cos")
def function(step: Step) -> Outputs:
    made = pointwise(step, "Math", function=step.op.upper())
    made.integral = step.op in ("Floor", "Ceil", "Round")
    return made


@reads("LeakyRelu")
def leaky_relu(step: Step) -> Outputs:
    return pointwise(step, "ReLU", negative_slope=float(step.attribute("alpha", 0.01)))


@reads("Elu")
def elu(step: Step) -> Outputs:
    return pointwise(step, "ELU", alpha=float(step.attribute("alpha", 1.0)))


@reads("Selu")
def selu(step: Step) -> Outputs:
    alpha = float(step.attribute("alpha", 1.6732632423543772))
    bent = pointwise(step, "ELU", part="elu", alpha=alpha)
    return pointwise(
        step, "Power", of=bent, scale=float(step.attribute("gamma", 1.0507009873554805))
    )


@reads("Celu")
def celu(step: Step) -> Outputs:
    """alpha · elu(x / alpha)."""
    alpha = float(step.attribute("alpha", 1.0))
    if alpha == 1:
        return pointwise(step, "ELU")
    scaled = pointwise(step, "Power", part="scaled", scale=1 / alpha)
    bent = pointwise(step, "ELU", of=scaled, part="elu")
    return pointwise(step, "Power", of=bent, scale=alpha)


@reads("Clip")
def clip(step: Step) -> Outputs:
    low = _bound(step, "min", 1, -LARGEST)
    high = _bound(step, "max", 2, LARGEST)
    if low == 0 and high >= LARGEST:
        return pointwise(step, "ReLU")
    return pointwise(step, "Clip", min=low, max=high)


def _bound(step: Step, name: str, place: int, otherwise: float) -> float:
    given = step.attribute(name)
    if given is None and step.has(place):
        given = np.ravel(step.constant(place, f"the {name}"))[0]
    bound = otherwise if given is None else float(given)
    return max(-LARGEST, min(LARGEST, bound))


@reads("Gelu", "GeluTanh")
def gelu(step: Step) -> Outputs:
    by_tanh = step.op == "GeluTanh" or step.attribute("approximate") == "tanh"
    return pointwise(step, "GELU", approximate="TANH" if by_tanh else "NONE")


def hard_sigmoid_of(step: Step, alpha: float, beta: float, part: str | None) -> Computed:
    """min(1, max(0, alpha x + beta))."""
    line = pointwise(step, "Power", part="line", scale=alpha, shift=beta)
    return pointwise(step, "Clip", of=line, part=part, min=0.0, max=1.0)


@reads("HardSigmoid")
def hard_sigmoid(step: Step) -> Outputs:
    alpha, beta = float(step.attribute("alpha", 0.2)), float(step.attribute("beta", 0.5))
    return hard_sigmoid_of(step, alpha, beta, None)


@reads("HardSwish")
def hard_swish(step: Step) -> Outputs:
    gate = hard_sigmoid_of(step, 1 / 6, 0.5, "gate")
    return times(step, step.value(0), gate)


@reads("Swish")
def swish(step: Step) -> Outputs:
    return pointwise(step, "Swish", beta=float(step.attribute("alpha", 1.0)))


@reads("Mish")
def mish(step: Step) -> Outputs:
    soft = pointwise(step, "BNLL", part="softplus")
    gate = pointwise(step, "TanH", of=soft, part="gate")
    return times(step, step.value(0), gate)


@reads("Softsign")
def softsign(step: Step) -> Outputs:
    size = pointwise(step, "AbsVal", part="size")
    gate = pointwise(step, "Power", of=size, part="gate", shift=1.0, power=-1.0)
    return times(step, step.value(0), gate)


@reads("ThresholdedRelu")
def thresholded_relu(step: Step) -> Outputs:
    limit = float(step.attribute("alpha", 1.0))
    gate = pointwise(step, "Threshold", part="gate", threshold=limit)
    return times(step, step.value(0), gate)


@reads("PRelu")
def prelu(step: Step) -> Outputs:
    slope, x = step.value(1), step.blob()
    if isinstance(slope, Computed):
        return _bent(step, x, slope)
    channels = x.shape[1] if len(x.shape) > 1 else 1
    if slope.size == 1:
        return step.layer("PReLU", [x], [slope.reshape(())], channel_shared=True)
    lined_up = (1,) * (len(x.shape) - slope.ndim) + slope.shape
    if slope.size != channels or len(lined_up) < 2 or lined_up[1] != channels:
        return _bent(step, x, slope)
    return step.layer("PReLU", [x], [slope])


def _bent(step: Step, x: Computed, slope: Value) -> Value:
    """What is above 0, and the rest times its slope."""
    above = step.layer("ReLU", [x], part="above")
    rest = step.layer("Eltwise", [x, above], part="rest", coeff=[1.0, -1.0])
    return sum_of(step, above, times(step, rest, slope, part="below"))


@reads("Cast", "CastLike")
def cast(step: Step) -> Outputs:
    """Types are kept in mind: the net computes in float32, and no layer wraps.  Fractions are
    dropped by whoever reads the values: Embed does so by itself."""
    value = step.value(0, rounded=True)
    given = step.value(1).dtype if step.op == "CastLike" else TYPES.get(step.attribute("to", 0))
    if given is None:
        step.refuse(f"a cast to type {step.attribute('to', 0)} is not supported")
    wanted = np.dtype(given)
    if not isinstance(value, Computed):
        with np.errstate(all="ignore"):
            return value.astype(wanted)
    if wanted.kind == "b" and value.dtype.kind != "b":
        from sparknet.onnx.operators.comparing import differs

        return differs(step, value, None)
    if wanted.kind == "f":
        return replace(value, dtype=FLOAT)
    if not value.integral:
        if wanted.itemsize < 4:
            step.refuse(f"it rounds to {wanted}, and no layer rounds")
        plain = step.plain(value)
        return Computed(plain.name, plain.stored, dtype=wanted, integral=True, rounded=True)
    if (wanted.itemsize < 4 or wanted.kind == "u") and not np.can_cast(value.dtype, wanted):
        step.refuse(f"whole numbers of {value.dtype} may not fit {wanted}; no layer wraps them")
    return replace(value, dtype=wanted)


@reads("Softmax", "LogSoftmax")
def softmax(step: Step) -> Outputs:
    """Before opset 13 the axes from `axis` on are one."""
    x = step.blob()
    old = step.opset < 13
    axis = step.axis(int(step.attribute("axis", 1 if old else -1)), len(x.shape))
    joined = old and math.prod(x.shape[axis + 1 :]) > 1
    rows = x
    if joined:
        width = math.prod(x.shape[axis:])
        rows = step.reshape(x, (math.prod(x.shape[:axis]), width), part="rows")
        axis = 1
    made = step.layer(step.op, [rows], part="softmax" if joined else None, axis=axis)
    return step.reshape(made, x.shape) if joined else made


def times(step: Step, one: Value, other: Value, part: str | None = None) -> Value:
    from sparknet.onnx.operators.arithmetic import combine

    return combine(step, "Mul", one, other, part)


def sum_of(step: Step, one: Value, other: Value) -> Value:
    from sparknet.onnx.operators.arithmetic import combine

    return combine(step, "Add", one, other)


@reads("ImageScaler")
def image_scaler(step: Step) -> Outputs:
    """Of the first opset: x times a number, and a bias for each channel."""
    x = step.blob()
    bias = np.asarray(step.attribute("bias", []), np.float32)
    scale = float(step.attribute("scale", 1.0))
    if len(x.shape) < 2 or bias.size != x.shape[1]:
        step.refuse(f"it has {bias.size} biases for the shape {list(x.shape)}")
    scaled = pointwise(step, "Power", of=x, part="scaled", scale=scale)
    return sum_of(step, scaled, bias.reshape(-1, *[1] * (len(x.shape) - 2)))
