"""Matrix products: with constant weights a layer that learns, otherwise of two blobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.arithmetic import combine
from sparknet.onnx.payloads import turned
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads


@reads("MatMul")
def matmul(step: Step) -> Outputs:
    a, b = step.value(0), step.value(1)
    if len(a.shape) > 1 and len(b.shape) > 1:
        return _product(step, a, b)
    if not a.shape or not b.shape:
        step.refuse("it multiplies matrices, and one number is none")
    if step.is_batched(a.shape[-1:]):
        step.refuse("it sums over the records, of which there may be any number")
    row, column = len(a.shape) == 1, len(b.shape) == 1
    one = _as_matrix(step, a, (1, *a.shape), "row") if row else a
    other = _as_matrix(step, b, (*b.shape, 1), "column") if column else b
    made = _product(step, one, other, "product")
    lead, wide = made.shape[:-2], made.shape[-2:]
    return step.reshape(made, (*lead, *wide[int(row) : 2 - int(column)]))


def _as_matrix(step: Step, vector: Value, shape: Sequence[int], part: str) -> Value:
    if isinstance(vector, Computed):
        return step.reshape(vector, shape, part=part)
    return vector.reshape(shape)


def _product(step: Step, a: Value, b: Value, part: str | None = None) -> Computed:
    if isinstance(a, Computed) and not isinstance(b, Computed) and b.ndim == 2:
        return linear(step, step.plain(a), b, None, part=part)
    return product(step, a, b, part=part)


@reads("Gemm")
def gemm(step: Step) -> Outputs:
    a, b = step.value(0), step.value(1)
    alpha, beta = float(step.attribute("alpha", 1.0)), float(step.attribute("beta", 1.0))
    turned = bool(step.attribute("transB"))
    bias = step.value(2) if step.has(2) else None
    if isinstance(a, Computed) and not isinstance(b, Computed) and not step.attribute("transA"):
        weights = b.T if turned else b
        if alpha != 1:
            weights = alpha * weights
        fixed = None if bias is None or isinstance(bias, Computed) else step.unbatched(bias)
        if bias is None or (fixed is not None and _is_row(fixed)):
            row = None if fixed is None else beta * np.broadcast_to(fixed.ravel(), weights.shape[1])
            return linear(step, step.plain(a), weights, row)
        made: Value = linear(step, step.plain(a), weights, None, part="product")
    else:
        first = _turned(step, a) if step.attribute("transA") else a
        made = product(step, first, _turned(step, b) if turned else b, part="product")
        made = combine(step, "Mul", made, np.float32(alpha), part="scaled")
    if bias is None:
        return made
    return combine(step, "Add", made, combine(step, "Mul", bias, np.float32(beta), "bias"))


def _is_row(array: Array) -> bool:
    return array.size == array.shape[-1] if array.ndim else True


def _turned(step: Step, value: Value) -> Value:
    if not isinstance(value, Computed):
        return np.ascontiguousarray(value.T)
    plain = step.plain(value)
    return Computed(plain.name, plain.stored, (1, 0))


def _rows(step: Step, weights: Array) -> Array:
    """A row for each output.  A constant of the file lies so from now on: it is turned once,
    however often it is read, and the memory of what it was is given back."""
    rows = turned(weights)
    source = step.reading.source
    for name in step.node.inputs:
        for held in (source.constants, step.reading.values):
            if held.get(name) is weights:
                held[name] = rows.T
    return rows


def linear(
    step: Step, x: Computed, weights: Array, bias: Array | None, part: str | None = None
) -> Computed:
    """x · weights + bias, over the last axis of x."""
    if not x.shape or weights.shape[0] != x.shape[-1]:
        step.refuse(f"weights {list(weights.shape)} do not fit the input {list(x.shape)}")
    arrays = [_rows(step, weights)] + ([] if bias is None else [bias])
    options: dict[str, Any] = {} if len(x.shape) == 2 else {"axis": len(x.shape) - 1}
    return step.layer(
        "InnerProduct",
        [x],
        arrays,
        part=part,
        num_output=weights.shape[1],
        bias_term=bias is not None,
        **options,
    )


def product(step: Step, a: Value, b: Value, part: str | None = None) -> Computed:
    """Products of the matrices in the last two axes; one that is only turned is read so."""
    axes = max(len(a.shape), len(b.shape))
    if min(len(a.shape), len(b.shape)) < 2:
        step.refuse("a product with a vector has no layer")
    first, turned_a = _side(step, a, axes, "a")
    second, turned_b = _side(step, b, axes, "b")
    options: dict[str, Any] = {
        name: True
        for name, turned in (("transpose_a", turned_a), ("transpose_b", turned_b))
        if turned
    }
    return step.layer("MatMul", [first, second], part=part, **options)


def _side(step: Step, value: Value, axes: int, part: str) -> tuple[Computed, bool]:
    turned = False
    if isinstance(value, Computed) and value.order is not None and value.pads is None:
        count = len(value.order)
        turned = value.order == (*range(count - 2), count - 1, count - 2)
        if turned:
            value = Computed(value.name, value.stored)
    if not isinstance(value, Computed):
        value = step.unbatched(value)
    blob = step.plain(value)
    lined: Sequence[int] = (1,) * (axes - len(blob.shape)) + blob.shape
    return step.reshape(blob, lined, part=f"{part}_axes"), turned
