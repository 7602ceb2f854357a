"""Operations on constants, done while a model is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from sparknet.onnx.folding_indices import PLACING
from sparknet.onnx.geometry import Inputs, axes_of, reshaped, slice_arguments, slices, split_sizes
from sparknet.onnx.limits import bounded, spread
from sparknet.onnx.source import Array, OnnxNode

Fold = Callable[[OnnxNode, Inputs], Any]


TYPES: dict[int, Any] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float32,
    11: np.float64,
    12: np.uint32,
    16: np.float32,
}
"""By the numbers of TensorProto.DataType; half floats are worked with as float32."""


def foldable(op: str) -> bool:
    return op in _FOLDS


def fold(node: OnnxNode, inputs: Inputs) -> list[Array]:
    """Return the outputs of a node whose inputs are all known; raises ValueError and its like."""
    results = _FOLDS[node.op](node, inputs)
    outputs = results if isinstance(results, list) else [results]
    sized = any(one is not None and one.dtype == object for one in inputs)
    return [np.asarray(one, object if sized else None) for one in outputs]


def _broadcast(function: Callable[..., Any]) -> Fold:
    def folded(node: OnnxNode, inputs: Inputs) -> Any:
        bounded(spread(*(one.shape for one in inputs)), inputs)
        with np.errstate(all="ignore"):
            return function(*inputs)

    return folded


def _same(function: Callable[..., Any]) -> Fold:
    def folded(node: OnnxNode, inputs: Inputs) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(function(inputs[0])).astype(inputs[0].dtype)

    return folded


def _variadic(function: Callable[..., Any]) -> Fold:
    def folded(node: OnnxNode, inputs: Inputs) -> Any:
        bounded(spread(*(one.shape for one in inputs)), inputs)
        value = inputs[0]
        for one in inputs[1:]:
            value = function(value, one)
        return value

    return folded


def _divide(a: Array, b: Array) -> Array:
    if object in (a.dtype, b.dtype):  # sizes
        return np.asarray(a // b, object)
    if a.dtype.kind in "iu":
        if not np.all(b):
            raise ValueError("division by zero")
        return np.asarray((np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype))
    return np.asarray(a / b)


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        raise ValueError("a remainder of floating numbers needs fmod=1")
    if not np.all(b):
        raise ValueError("division by zero")
    return np.asarray(np.mod(a, b))


def _cast(node: OnnxNode, inputs: Inputs) -> Any:
    code = int(node.attributes.get("to", 0))
    if code not in TYPES:
        raise ValueError(f"a cast to type {code} is not supported")
    if inputs[0].dtype == object and code in (1, 6, 7):  # sizes
        return inputs[0]
    with np.errstate(all="ignore"):
        return inputs[0].astype(TYPES[code])


def _batch_norm(node: OnnxNode, inputs: Inputs) -> Any:
    """Fold a BatchNormalization of constants, as standardised weights (NFNet, BiT) have it."""
    x, scale, bias, mean, variance = (np.asarray(one, np.float64) for one in inputs)
    around, statistics = tuple(axis for axis in range(x.ndim) if axis != 1), []
    if node.attributes.get("training_mode"):
        momentum, old = float(node.attributes.get("momentum", 0.9)), (mean, variance)
        mean, variance = x.mean(around), x.var(around)
        statistics = [
            momentum * one + (1 - momentum) * new
            for one, new in zip(old, (mean, variance), strict=True)
        ]
    wide = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
    factor = scale / np.sqrt(variance + float(node.attributes.get("epsilon", 1e-5)))
    y = (x - mean.reshape(wide)) * factor.reshape(wide) + bias.reshape(wide)
    return [one.astype(np.float32) for one in (y, *statistics)][: len(node.outputs)]


def _constant(node: OnnxNode, inputs: Inputs) -> Any:
    for name, value in node.attributes.items():
        if name == "value":
            return value
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
    raise ValueError("its value is of no supported kind")


def _constant_of_shape(node: OnnxNode, inputs: Inputs) -> Any:
    value = np.ravel(node.attributes.get("value", np.zeros(1, np.float32)))
    return np.full(bounded(np.ravel(inputs[0]).tolist()), value[0], value.dtype)


def _expand(node: OnnxNode, inputs: Inputs) -> Any:
    target = bounded(np.ravel(inputs[1]).tolist())
    shape = bounded(spread(inputs[0].shape, target))
    return np.broadcast_to(inputs[0], shape)


def _eye_like(node: OnnxNode, inputs: Inputs) -> Any:
    if inputs[0].ndim != 2:
        raise ValueError(f"{inputs[0].ndim} axes, where a matrix has 2")
    kind = int(node.attributes.get("dtype", 0))
    dtype: Any = TYPES[kind] if kind in TYPES else inputs[0].dtype
    rows, columns = bounded(inputs[0].shape)
    return np.eye(rows, columns, k=int(node.attributes.get("k", 0)), dtype=dtype)


def _range(node: OnnxNode, inputs: Inputs) -> Any:
    start, limit, delta = (np.ravel(one)[0] for one in inputs)
    if delta == 0:
        raise ValueError("its step is 0")
    bounded((max(0, int(np.ceil((float(limit) - float(start)) / float(delta)))),))
    return np.arange(start, limit, delta).astype(inputs[0].dtype)


def _tile(node: OnnxNode, inputs: Inputs) -> Any:
    repeats = [int(one) for one in np.ravel(inputs[1])]
    bounded([size * times for size, times in zip(inputs[0].shape, repeats, strict=True)])
    return np.tile(inputs[0], repeats)


def _concat(node: OnnxNode, inputs: Inputs) -> Any:
    bounded((sum(one.size for one in inputs),), ())
    return np.concatenate(inputs, int(node.attributes["axis"]))


def _gather(node: OnnxNode, inputs: Inputs) -> Any:
    axis = int(node.attributes.get("axis", 0))
    rest = inputs[0].size // max(1, inputs[0].shape[axis])
    bounded((rest * inputs[1].size,))
    return np.take(inputs[0], inputs[1].astype(np.int64), axis)


def _unsqueeze(node: OnnxNode, inputs: Inputs) -> Any:
    axes = axes_of(node, inputs) or []
    bounded((1,) * (inputs[0].ndim + len(axes)))
    return np.expand_dims(inputs[0], tuple(axes))


def _squeeze(node: OnnxNode, inputs: Inputs) -> Any:
    axes = axes_of(node, inputs)
    return np.squeeze(inputs[0], None if axes is None else tuple(axes))


def _slice(node: OnnxNode, inputs: Inputs) -> Any:
    parts = slices(inputs[0].shape, *slice_arguments(node, inputs))
    value = inputs[0]
    for axis, places in enumerate(parts):
        if places != range(value.shape[axis]):
            value = np.take(value, np.asarray(places, np.int64), axis)
    return value


def _split(node: OnnxNode, inputs: Inputs) -> Any:
    axis = int(node.attributes.get("axis", 0))
    sizes = split_sizes(node, inputs, inputs[0].shape[axis])
    return list(np.split(inputs[0], np.cumsum(sizes)[:-1], axis))


def _reduce(function: Callable[..., Any]) -> Fold:
    def folded(node: OnnxNode, inputs: Inputs) -> Any:
        axes = axes_of(node, inputs)
        if not axes and node.attributes.get("noop_with_empty_axes"):
            if node.op == "ReduceL2":
                raise ValueError("it reduces nothing, which is not the same everywhere")
            return inputs[0]
        keep = bool(node.attributes.get("keepdims", 1))
        result = function(inputs[0], axis=tuple(axes) if axes else None, keepdims=keep)
        return np.asarray(result).astype(inputs[0].dtype)

    return folded


def _where(condition: Array, a: Array, b: Array) -> Array:
    return np.asarray(np.where(condition, a, b))


def _clip(node: OnnxNode, inputs: Inputs) -> Any:
    low = node.attributes.get("min", inputs[1] if len(inputs) > 1 else None)
    high = node.attributes.get("max", inputs[2] if len(inputs) > 2 else None)
    return inputs[0] if low is None and high is None else np.clip(inputs[0], low, high)


def _gemm(node: OnnxNode, inputs: Inputs) -> Any:
    attributes = node.attributes
    a = inputs[0].T if attributes.get("transA") else inputs[0]
    b = inputs[1].T if attributes.get("transB") else inputs[1]
    bounded((*a.shape[:-1], b.shape[-1]), inputs)
    value = attributes.get("alpha", 1.0) * (a @ b)
    if len(inputs) > 2 and inputs[2] is not None:
        value = value + attributes.get("beta", 1.0) * inputs[2]
    return value.astype(inputs[0].dtype)


def _matmul(node: OnnxNode, inputs: Inputs) -> Any:
    bounded((*inputs[0].shape[:-1], inputs[1].shape[-1]))
    return np.matmul(inputs[0], inputs[1])


def _dequantize(node: OnnxNode, inputs: Inputs) -> Any:
    values = inputs[0].astype(np.float32)
    zero = np.zeros(1) if len(inputs) < 3 or inputs[2] is None else inputs[2]
    scale = _lined_up(node, np.asarray(inputs[1], np.float32), values)
    return ((values - _lined_up(node, zero.astype(np.float32), values)) * scale).astype(np.float32)


def _lined_up(node: OnnxNode, numbers: Array, values: Array) -> Array:
    """Scales or zero points, one for all values or one for each index of an axis."""
    if numbers.size == 1:
        return numbers.reshape(())
    if numbers.ndim == 1:
        shape = [1] * values.ndim
        shape[int(node.attributes.get("axis", 1))] = numbers.size
        numbers = numbers.reshape(shape)
    if spread(values.shape, numbers.shape) != values.shape:
        raise ValueError(f"{list(numbers.shape)} scales do not fit {list(values.shape)}")
    return numbers


def _quantize(node: OnnxNode, inputs: Inputs) -> Any:
    zero = inputs[2] if len(inputs) > 2 and inputs[2] is not None else np.zeros(1, np.uint8)
    scale = _lined_up(node, np.asarray(inputs[1], np.float32), inputs[0])
    bounds = np.iinfo(zero.dtype)
    whole = np.rint(inputs[0] / scale) + _lined_up(node, zero, inputs[0])
    return np.clip(whole, bounds.min, bounds.max).astype(zero.dtype)


def _pow(a: Array, b: Array) -> Array:
    return np.asarray(np.power(a, b).astype(a.dtype))


def _erf(x: Array) -> Array:
    bounded(x.shape)
    return np.asarray(np.array([math.erf(float(one)) for one in np.ravel(x)]).reshape(x.shape))


_FOLDS: dict[str, Fold] = {
    "Abs": _same(np.abs),
    "Add": _broadcast(np.add),
    "And": _broadcast(np.logical_and),
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Ceil": _same(np.ceil),
    "Clip": _clip,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Cos": _same(np.cos),
    "DequantizeLinear": _dequantize,
    "Div": _broadcast(_divide),
    "Dropout": lambda node, inputs: inputs[0],
    "Equal": _broadcast(np.equal),
    "Erf": _same(_erf),
    "Exp": _same(np.exp),
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": lambda node, inputs: inputs[0].reshape(
        prod(inputs[0].shape[: node.attributes.get("axis", 1)]), -1
    ),
    "Floor": _same(np.floor),
    "Gather": _gather,
    "Gemm": _gemm,
    "Greater": _broadcast(np.greater),
    "GreaterOrEqual": _broadcast(np.greater_equal),
    "Identity": lambda node, inputs: inputs[0],
    "IsNaN": lambda node, inputs: np.isnan(inputs[0]),
    "Less": _broadcast(np.less),
    "LessOrEqual": _broadcast(np.less_equal),
    "Log": _same(np.log),
    "MatMul": _matmul,
    "Max": _variadic(np.maximum),
    "Min": _variadic(np.minimum),
    "Mod": lambda node, inputs: _broadcast(np.fmod if node.attributes.get("fmod") else _remainder)(
        node, inputs
    ),
    "Mul": _broadcast(np.multiply),
    "Neg": _same(np.negative),
    "Not": _same(np.logical_not),
    "Or": _broadcast(np.logical_or),
    "Pow": _broadcast(_pow),
    "QuantizeLinear": _quantize,
    "Range": _range,
    "Reciprocal": _same(np.reciprocal),
    "ReduceL2": _reduce(lambda x, **how: np.sqrt(np.sum(np.square(x), **how))),
    "ReduceMax": _reduce(np.max),
    "ReduceMean": _reduce(np.mean),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Relu": _same(lambda x: np.maximum(x, 0)),
    "Reshape": lambda node, inputs: inputs[0].reshape(
        reshaped(
            inputs[0].shape, np.ravel(inputs[1]).tolist(), bool(node.attributes.get("allowzero"))
        )
    ),
    "Round": _same(np.round),
    "Shape": lambda node, inputs: np.asarray(inputs[0].shape, np.int64)[
        node.attributes.get("start", 0) : node.attributes.get("end")
    ],
    "Sign": _same(np.sign),
    "Sigmoid": _same(lambda x: 1 / (1 + np.exp(-x))),
    "Sin": _same(np.sin),
    "Size": lambda node, inputs: np.asarray(inputs[0].size, np.int64),
    "Slice": _slice,
    "Split": _split,
    "Sqrt": _same(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _broadcast(np.subtract),
    "Sum": _variadic(np.add),
    "Tanh": _same(np.tanh),
    "Tile": _tile,
    "Transpose": lambda node, inputs: np.transpose(inputs[0], node.attributes.get("perm")),
    "Unsqueeze": _unsqueeze,
    "Where": _broadcast(_where),
    "Xor": _broadcast(np.logical_xor),
    **PLACING,
}
