"""Sums, products and the like of two values, one of them spread over the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from sparknet.layers import Shape
from sparknet.onnx.folding import TYPES, fold
from sparknet.onnx.limits import spread
from sparknet.onnx.netlist import LARGEST, Computed, NetLayer, Value
from sparknet.onnx.operators.shapes import tiled
from sparknet.onnx.source import Array, OnnxNode
from sparknet.onnx.step import Outputs, Step, reads


@reads("Add", "Mul", "Sub", "Div", "Max", "Min")
def binary(step: Step) -> Outputs:
    if step.op == "Add" and len(step.inputs) == 2:
        for place, other in enumerate(step.inputs[::-1]):
            one = step.inputs[place]
            if isinstance(one, Computed) and (rows := _rows(step, one, other)):
                return replace(step.whole(one) if one.rounded else one, rows=rows)
    values = [step.value(place) for place in range(len(step.inputs))]
    if step.op == "Div" and values[0].dtype.kind in "iu":
        step.refuse("it divides whole numbers, and no layer rounds")
    if step.op == "Div" and step.node.outputs[0] in step.reading.exact and _rounds(values[1]):
        bottoms = [x if isinstance(x, Computed) else step.unbatched(x) for x in values]
        return step.layer("Div", [step.plain(x) for x in bottoms])
    output = values[0]
    for place, other in enumerate(values[1:], 2):
        last = place == len(values)
        output = combine(step, step.op, output, other, None if last else f"first_{place}")
    return output


def _rounds(divisor: Value) -> bool:
    """Return whether its inverse may be a last digit off."""
    return isinstance(divisor, Computed) or bool(np.any(np.frexp(divisor)[0] % 0.5))


def _rows(step: Step, places: Computed, array: Value | None) -> int:
    """Return how many rows each record has, if a constant is the number of its first one."""
    if not isinstance(array, np.ndarray) or not places.integral:
        return 0
    if not array.shape == places.shape == (step.batch,):
        return 0
    return max(int(array[1]), 0) if np.all(array == np.arange(int(step.batch)) * array[1]) else 0


@reads("Sum", "Mean")
def summed(step: Step) -> Outputs:
    values = [step.value(place) for place in range(len(step.inputs))]
    blobs = [step.plain(one) for one in values]
    share = 1.0 / len(blobs) if step.op == "Mean" else 1.0
    if len({one.shape for one in blobs}) == 1 and len(blobs) > 1:
        return step.layer("Eltwise", blobs, coeff=[share] * len(blobs))
    total: Value = blobs[0]
    for place, other in enumerate(blobs[1:]):
        total = combine(step, "Add", total, other, f"sum_{place}")
    return step.pointwise("Power", of=total, scale=share)


@reads("Pow")
def power(step: Step) -> Outputs:
    base, exponent = step.value(0), step.value(1)
    if isinstance(exponent, Computed):
        if isinstance(base, Computed) or base.size != 1 or float(np.ravel(base)[0]) <= 0:
            step.refuse("a power that the model computes needs a constant base above zero")
        return step.pointwise("Exp", of=exponent, base=float(np.ravel(base)[0]))
    if exponent.size != 1:
        step.refuse("its exponent must be one number")
    number = float(np.ravel(exponent)[0])
    if base.dtype.kind in "iu" and (number < 0 or number % 1):
        step.refuse(f"it takes whole numbers to the power of {number:g}, and no layer rounds")
    if exponent.ndim > len(base.shape):
        base = _lined_up(step, step.plain(base), exponent.ndim, "axes")
    return step.pointwise("Power", of=base, power=number)


def combine(step: Step, op: str, a: Value, b: Value, part: str | None = None) -> Value:
    """``a op b`` by ONNX's rules of broadcasting."""
    if isinstance(a, Computed) and isinstance(b, Computed):
        return _of_blobs(step, op, a, b, part)
    if isinstance(a, Computed):
        assert not isinstance(b, Computed)
        return _with_constant(step, op, a, step.unbatched(b), part)
    if not isinstance(b, Computed):
        return fold(OnnxNode(op, step.node.name, [], []), [np.asarray(a), np.asarray(b)])[0]
    array = step.unbatched(a)
    if op == "Sub":  # c - x
        turned = step.pointwise("Power", of=b, part="negative", scale=-1.0)
        return _with_constant(step, "Add", turned, array, part)
    if op == "Div":  # c / x
        turned = step.pointwise("Power", of=b, part="inverse", power=-1.0)
        return _with_constant(step, "Mul", turned, array, part)
    return _with_constant(step, op, b, array, part)


# -- a constant ------------------------------------------------------------------------------


def _with_constant(step: Step, op: str, x: Computed, array: Array, part: str | None) -> Value:
    array = array.astype(np.float32)
    if array.ndim > len(x.shape):
        x = step.reshape(x, (1,) * (array.ndim - len(x.shape)) + x.shape, part="axes")
    if op == "Sub":
        op, array = "Add", -array
    elif op == "Div":
        with np.errstate(all="ignore"):
            op, array = "Mul", (1 / array.astype(np.float64)).astype(np.float32)
    alike = array.ndim == len(x.shape) and array.shape[:1] == x.shape[:1]
    rows = step.rows_of_each(array) if alike else None
    if rows is not None:
        wide = step.reshape(x, (step.batch, rows.shape[1], *x.shape[1:]), part="records")
        each = step.plain(_with_constant(step, op, wide, rows, "each"))
        return step.reshape(each, (x.shape[0], *each.shape[2:]), part=part)
    is_one = bool(array.size) and bool(np.all(array == array.flat[0]))
    if step.reading.source.is_ours and array.size > 1:
        is_one = False  # a Scale or Bias before its training
    if is_one and _fits(array.shape, x.shape):
        return _with_number(step, op, x, float(array.flat[0]), part)
    if op in ("Max", "Min") or not _fits(array.shape, x.shape):
        return _of_blobs(step, op, step.plain(x), _spread(step, array, x), part)
    if _reaches_over_open(step, array, x.shape):
        return _of_blobs(step, op, step.plain(x), step.parameter(array), part)
    axis, block = _block(array, x.shape)
    if x.order is not None and x.pads is None:
        x = step.plain(x)
    output = _amended(step, op, x, axis, block)
    if output is not None:
        return output
    kind = "Bias" if op == "Add" else "Scale"
    extra: dict[str, Any] = {} if op == "Add" else {"bias_term": False}
    return step.layer(
        kind, [step.plain(x)], [block], part=part, axis=axis, num_axes=block.ndim, **extra
    )


def _fits(small: Sequence[int], large: Sequence[int]) -> bool:
    """Return whether a constant is spread over the blob, and not the blob over the constant."""
    pairs = zip(small[::-1], large[::-1], strict=False)
    return all(one in (1, other) for one, other in pairs)


def _spread(step: Step, array: Array, x: Computed) -> Computed:
    shape = spread(array.shape, x.shape)
    sizes = [1 if step.is_open(size) else size for size in shape]
    return step.parameter(np.ascontiguousarray(np.broadcast_to(array, sizes)))


def _with_number(step: Step, op: str, x: Computed, number: float, part: str | None) -> Value:
    if op == "Max":
        if number == 0:
            return step.pointwise("ReLU", of=x, part=part)
        return step.pointwise("Clip", of=x, part=part, min=number, max=LARGEST)
    if op == "Min":
        return step.pointwise("Clip", of=x, part=part, min=-LARGEST, max=number)
    if op == "Add":
        return x if number == 0 else step.pointwise("Power", of=x, part=part, shift=number)
    return x if number == 1 else step.pointwise("Power", of=x, part=part, scale=number)


def _reaches_over_open(step: Step, array: Array, shape: Shape) -> bool:
    """Return whether an open size lies between the axes over which a constant differs."""
    lined = (1,) * (len(shape) - array.ndim) + array.shape
    apart = [axis for axis, size in enumerate(lined) if size != 1]
    return any(map(step.is_open, shape[apart[0] : apart[-1] + 1]))


def _block(array: Array, shape: Shape) -> tuple[int, Array]:
    """Return the axes over which a constant differs, filled up so that they lie side by side."""
    lined = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    apart = [axis for axis, size in enumerate(lined.shape) if size != 1]
    first, last = apart[0], apart[-1] + 1
    block = np.broadcast_to(lined.reshape(lined.shape[first:last]), shape[first:last])
    return first, np.ascontiguousarray(block)


def _amended(step: Step, op: str, x: Computed, axis: int, block: Array) -> Computed | None:
    """Return the layer before, with this constant as its bias."""
    maker = step.maker(x)
    if op != "Add" or maker is None or not _can_be_biased(maker, len(x.shape), axis, block):
        return None
    maker.options.bias_term = True
    maker.arrays.append(np.ascontiguousarray(block, np.float32))
    step.reading.net.replan(maker)
    return x


def _can_be_biased(layer: NetLayer, axes: int, axis: int, block: Array) -> bool:
    if len(layer.parameter.bottom) != 1 or block.ndim == 0:
        return False
    if layer.type == "InnerProduct":
        fits = axis == axes - 1 and block.ndim == 1
    elif layer.type == "Scale":
        fits = axis == layer.options.axis and block.shape == layer.arrays[0].shape
    else:
        fits = layer.type in ("Convolution", "Deconvolution") and axis == block.ndim == 1
    return fits and not layer.options.bias_term


# -- two blobs -------------------------------------------------------------------------------


def _of_blobs(step: Step, op: str, a: Computed, b: Computed, part: str | None) -> Value:
    if a.order is not None and a.order == b.order and a.pads is None and b.pads is None:
        plain = _of_blobs(step, op, Computed(a.name, a.stored), Computed(b.name, b.stored), part)
        assert isinstance(plain, Computed)
        return Computed(plain.name, plain.stored, a.order)
    a, b = step.plain(a), step.plain(b)
    if op == "Mul":
        swish = _swish(step, a, b) or _swish(step, b, a)
        if swish is not None:
            return swish
    if op == "Div":
        b, op = step.pointwise("Power", of=b, part="inverse", power=-1.0), "Mul"
    if a.shape != b.shape:
        return _unequal(step, op, a, b, part)
    return _equal(step, op, a, b, part)


_ELTWISE: dict[str, dict[str, Any]] = {
    "Add": {},
    "Mul": {"operation": "PROD"},
    "Sub": {"coeff": [1.0, -1.0]},
    "Max": {"operation": "MAX"},
}


def _equal(step: Step, op: str, a: Computed, b: Computed, part: str | None) -> Computed:
    if op == "Min":
        turned = [
            step.layer("Power", [one], part=f"negative_{place}", scale=-1.0)
            for place, one in enumerate((a, b))
        ]
        most = step.layer("Eltwise", turned, part="most", operation="MAX")
        return step.layer("Power", [most], part=part, scale=-1.0)
    return step.layer("Eltwise", [a, b], part=part, **_ELTWISE[op])


def _unequal(step: Step, op: str, a: Computed, b: Computed, part: str | None) -> Value:
    """Return one of them is spread by Scale or Bias where they can, otherwise by Tile."""
    one, other = (a, b) if prod(a.shape) == 1 else (b, a)
    if op in ("Add", "Mul") and prod(one.shape) == 1 and len(one.shape) <= len(other.shape):
        number = step.reshape(one, (), part="number")
        return step.layer("Bias" if op == "Add" else "Scale", [other, number], part=part, axis=0)
    axes = max(len(a.shape), len(b.shape))
    a, b = (_lined_up(step, x, axes, f"axes_{place}") for place, x in enumerate((a, b)))
    whole = spread(a.shape, b.shape)
    if op == "Sub" and a.shape == whole:
        b, op = step.pointwise("Power", of=b, part="negative", scale=-1.0), "Add"
    if op in ("Add", "Mul"):
        if b.shape == whole:
            a, b = b, a
        block = _side_by_side(b.shape, whole) if a.shape == whole else None
        if block is not None:
            first, last = block
            small = step.reshape(b, b.shape[first : last + 1], part="small")
            kind = "Bias" if op == "Add" else "Scale"
            return step.layer(kind, [a, small], part=part, axis=first)
    a, b = (tiled(step, x, whole, f"tiled_{place}") for place, x in enumerate((a, b)))
    return _equal(step, op, a, b, part)


def _lined_up(step: Step, x: Computed, axes: int, part: str) -> Computed:
    return step.reshape(x, (1,) * (axes - len(x.shape)) + x.shape, part=part)


def _side_by_side(small: Shape, whole: Shape) -> tuple[int, int] | None:
    """Return the first and last of the axes that are not spread, if they lie side by side."""
    axes = [axis for axis, size in enumerate(small) if size == whole[axis] and size != 1]
    if not axes:
        return None
    first, last = axes[0], axes[-1]
    return (first, last) if small[first : last + 1] == whole[first : last + 1] else None


def _swish(step: Step, x: Computed, gate: Computed) -> Computed | None:
    """x · sigmoid(x), as one layer."""
    maker = step.maker(gate)
    if maker is None or maker.type != "Sigmoid" or list(maker.parameter.bottom) != [x.name]:
        return None
    step.reading.net.remove(maker)
    return step.layer("Swish", [x])


_STEEP = (
    *("ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "Round", "Sign", "TopK"),
)
"""Operators for which a last digit may make a difference."""
_MIXING = (
    *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "Einsum", "GRU", "Gemm"),
    *("GlobalAveragePool", "InstanceNormalization", "LSTM", "LayerNormalization", "MatMul", "RNN"),
    *("ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"),
)
"""Operators whose results are sums, of which nobody knows the last digit."""


def exact_quotients(nodes: Sequence[OnnxNode]) -> set[str]:
    """Return the values that are read by a steep operator, through others that do not mix them."""
    names: set[str] = set()
    for node in reversed(nodes):
        if _is_steep(node) or (node.op not in _MIXING and not names.isdisjoint(node.outputs)):
            names.update(node.inputs)
    names.discard("")
    return names


def _is_steep(node: OnnxNode) -> bool:
    if node.op == "Cast":
        to: Any = TYPES.get(node.attributes.get("to", 0))
        return to is not None and to not in (_FLOATS)
    if node.op == "GridSample":
        return node.attributes.get("mode") == "nearest"
    return node.op in _STEEP


_FLOATS = {TYPES[number] for number in (1, 10, 11, 16)}
