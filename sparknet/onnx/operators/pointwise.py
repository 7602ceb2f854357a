"""Operators that map each value to one value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sparknet.onnx.folding import TYPES
from sparknet.onnx.netlist import FLOAT, LARGEST, Computed, Value
from sparknet.onnx.operators.binary import combine
from sparknet.onnx.operators.comparison import differs
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_PLAIN = {
    "Abs": "AbsVal",
    "Exp": "Exp",
    "HardSwish": "HardSwish",
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
_BENT = {
    "Elu": ("ELU", "alpha", 1.0),
    "LeakyRelu": ("ReLU", "negative_slope", 0.01),
    "Swish": ("Swish", "beta", 1.0),
}
"""Operators with an alpha: the layer, its option, and what it is unless given."""


@reads(*_PLAIN)
def plain(step: Step) -> Outputs:
    return step.pointwise(_PLAIN[step.op])


@reads(*_POWERS)
def power(step: Step) -> Outputs:
    return step.pointwise("Power", **_POWERS[step.op])


@reads("Floor", "Ceil", "Round", "Sin", "Cos")
def function(step: Step) -> Outputs:
    output = step.pointwise("Math", function=step.op.upper())
    output.integral = step.op in ("Floor", "Ceil", "Round")
    return output


@reads(*_BENT)
def bent(step: Step) -> Outputs:
    kind, option, usual = _BENT[step.op]
    options: dict[str, Any] = {option: float(step.attribute("alpha", usual))}
    return step.pointwise(kind, **options)


@reads("Selu")
def selu(step: Step) -> Outputs:
    alpha = float(step.attribute("alpha", 1.6732632423543772))
    bent = step.pointwise("ELU", part="elu", alpha=alpha)
    gamma = float(step.attribute("gamma", 1.0507009873554805))
    return step.pointwise("Power", of=bent, scale=gamma)


@reads("Celu")
def celu(step: Step) -> Outputs:
    """alpha · elu(x / alpha)."""
    alpha = float(step.attribute("alpha", 1.0))
    if alpha == 1:
        return step.pointwise("ELU")
    scaled = step.pointwise("Power", part="scaled", scale=1 / alpha)
    bent = step.pointwise("ELU", of=scaled, part="elu")
    return step.pointwise("Power", of=bent, scale=alpha)


@reads("Clip")
def clip(step: Step) -> Outputs:
    low = _bound(step, "min", 1, -LARGEST)
    high = _bound(step, "max", 2, LARGEST)
    low = min(low, high)  # where they cross, all is the upper one
    if low == 0 and high >= LARGEST:
        return step.pointwise("ReLU")
    return step.pointwise("Clip", min=low, max=high)


def _bound(step: Step, name: str, place: int, otherwise: float) -> float:
    number = step.attribute(name)
    if number is None and step.has(place):
        number = np.ravel(step.constant(place, f"the {name}"))[0]
    bound = otherwise if number is None else float(number)
    return max(-LARGEST, min(LARGEST, bound))


@reads("Gelu", "GeluTanh")
def gelu(step: Step) -> Outputs:
    by_tanh = step.op == "GeluTanh" or step.attribute("approximate") == "tanh"
    return step.pointwise("GELU", approximate="TANH" if by_tanh else "NONE")


@reads("GeluHalf")
def gelu_of_half(step: Step) -> Outputs:
    """GELU by another number than the root of 2."""
    share = 2**0.5 / HALF_ROOT
    wide = step.pointwise("Power", part="scaled", scale=share)
    output = step.pointwise("GELU", of=wide, part="wide")
    return step.pointwise("Power", of=output, scale=1 / share)


def hard_sigmoid_of(step: Step, alpha: float, beta: float, part: str | None) -> Computed:
    """min(1, max(0, alpha x + beta))."""
    line = step.pointwise("Power", part="line", scale=alpha, shift=beta)
    return step.pointwise("Clip", of=line, part=part, min=0.0, max=1.0)


@reads("HardSigmoid")
def hard_sigmoid(step: Step) -> Outputs:
    alpha, beta = float(step.attribute("alpha", 0.2)), float(step.attribute("beta", 0.5))
    return hard_sigmoid_of(step, alpha, beta, None)


@reads("Mish")
def mish(step: Step) -> Outputs:
    soft = step.pointwise("BNLL", part="softplus")
    gate = step.pointwise("TanH", of=soft, part="gate")
    return combine(step, "Mul", step.value(0), gate)


@reads("Softsign")
def softsign(step: Step) -> Outputs:
    size = step.pointwise("AbsVal", part="size")
    gate = step.pointwise("Power", of=size, part="gate", shift=1.0, power=-1.0)
    return combine(step, "Mul", step.value(0), gate)


@reads("ThresholdedRelu")
def thresholded_relu(step: Step) -> Outputs:
    limit = float(step.attribute("alpha", 1.0))
    gate = step.pointwise("Threshold", part="gate", threshold=limit)
    return combine(step, "Mul", step.value(0), gate)


@reads("PRelu")
def prelu(step: Step) -> Outputs:
    slope, x = step.value(1), step.blob()
    if len(slope.shape) > len(x.shape):
        step.refuse(f"its slope has {len(slope.shape)} axes, and what it bends {len(x.shape)}")
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
    """Return what is above 0, and the rest times its slope."""
    above = step.layer("ReLU", [x], part="above")
    rest = step.layer("Eltwise", [x, above], part="rest", coeff=[1.0, -1.0])
    return combine(step, "Add", above, combine(step, "Mul", rest, slope, part="below"))


@reads("Cast", "CastLike")
def cast(step: Step) -> Outputs:
    """Note the type; the net computes in float32, and readers drop fractions."""
    value = step.value(0, rounded=True)
    dtype = step.value(1).dtype if step.op == "CastLike" else TYPES.get(step.attribute("to", 0))
    if dtype is None:
        step.refuse(f"a cast to type {step.attribute('to', 0)} is not supported")
    target = np.dtype(dtype)
    if not isinstance(value, Computed):
        with np.errstate(all="ignore"):
            return value.astype(target)
    if target.kind == "b" and value.dtype.kind != "b":
        return differs(step, value, None)
    if target.kind == "f":
        return replace(value, dtype=FLOAT)
    if not value.integral:
        if target.itemsize < 4:
            step.refuse(f"it rounds to {target}, and no layer rounds")
        plain = step.plain(value)
        return Computed(plain.name, plain.stored, dtype=target, integral=True, rounded=True)
    if (target.itemsize < 4 or target.kind == "u") and not np.can_cast(value.dtype, target):
        step.refuse(f"whole numbers of {value.dtype} may not fit {target}; no layer wraps them")
    return replace(value, dtype=target)


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
    shares = step.layer(step.op, [rows], part="softmax" if joined else None, axis=axis)
    return step.reshape(shares, x.shape) if joined else shares


@reads("ImageScaler")
def image_scaler(step: Step) -> Outputs:
    """Read the first opset's x times a number, and a bias for each channel."""
    x = step.blob()
    bias = np.asarray(step.attribute("bias", []), np.float32)
    scale = float(step.attribute("scale", 1.0))
    if len(x.shape) < 2 or bias.size != x.shape[1]:
        step.refuse(f"it has {bias.size} biases for the shape {list(x.shape)}")
    scaled = step.pointwise("Power", of=x, part="scaled", scale=scale)
    return combine(step, "Add", scaled, bias.reshape(-1, *[1] * (len(x.shape) - 2)))


HALF_ROOT = float(np.float16(2**0.5))
PROBE = np.linspace(-6, 6, 49, dtype=np.float32)


def _gelu(x: Array, root: float = 2**0.5) -> Any:
    return x * 0.5 * (1 + np.array([math.erf(float(one) / root) for one in x]))


def _gelu_by_tanh(x: Array) -> Any:
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


ACTIVATIONS: dict[str, Callable[[Array], Any]] = {
    "Gelu": _gelu,
    "GeluTanh": _gelu_by_tanh,
    "GeluHalf": partial(_gelu, root=HALF_ROOT),  # half floats have no nearer root of 2
    "HardSwish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}
