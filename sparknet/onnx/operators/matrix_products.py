"""Matrix products: MatMul, Gemm, Einsum and DFT."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from sparknet.layers import Shape
from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.binary import combine
from sparknet.onnx.operators.shapes import permute
from sparknet.onnx.payloads import contiguous_transpose
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
    output = _product(step, one, other, "product")
    lead, wide = output.shape[:-2], output.shape[-2:]
    return step.reshape(output, (*lead, *wide[int(row) : 2 - int(column)]))


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
        output: Value = linear(step, step.plain(a), weights, None, part="product")
    else:
        first = _turned(step, a) if step.attribute("transA") else a
        output = product(step, first, _turned(step, b) if turned else b, part="product")
        output = combine(step, "Mul", output, np.float32(alpha), part="scaled")
    if bias is None:
        return output
    return combine(step, "Add", output, combine(step, "Mul", bias, np.float32(beta), "bias"))


def _is_row(array: Array) -> bool:
    return array.size == array.shape[-1] if array.ndim else True


def _turned(step: Step, value: Value) -> Value:
    if not isinstance(value, Computed):
        return np.ascontiguousarray(value.T)
    plain = step.plain(value)
    return Computed(plain.name, plain.stored, (1, 0))


def _rows(step: Step, weights: Array) -> Array:
    """Return a row for each output; a constant of the file is turned once, in place."""
    rows = contiguous_transpose(weights)
    source = step.reading.source
    for name in step.node.inputs:
        for arrays in (source.constants, step.reading.values):
            if arrays.get(name) is weights:
                arrays[name] = rows.T
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


@reads("Einsum")
def einsum(step: Step) -> Outputs:
    """Return the axes of two operands: kept in both, summed in both, and in one alone."""
    terms, result = _letters(step)
    values = [_alone(step, step.value(place), terms, place, result) for place in range(len(terms))]
    if len(values) == 1:
        return permute(values[0], [terms[0].index(one) for one in result])
    if len(values) != 2:
        step.refuse("it joins more than two values")
    if not isinstance(values[0], Computed):
        values, terms = values[::-1], terms[::-1]
    first, second = terms
    both = [one for one in first if one in second and one in result]
    inner = [one for one in first if one in second and one not in result]
    rows = [one for one in first if one not in second]
    columns = [one for one in second if one not in first]
    sizes = dict(zip(first, values[0].shape, strict=True))
    sizes |= dict(zip(second, values[1].shape, strict=True))
    order = [*both, *rows, *columns]
    apart = [[one] for one in both]
    if both or isinstance(values[1], Computed):
        a = _grouped(step, values[0], first, [*apart, rows, inner], sizes, "left")
        b = _grouped(step, values[1], second, [*apart, inner, columns], sizes, "right")
        output = product(step, a, b, part="product")
    else:
        a = _grouped(step, values[0], first, [*([one] for one in rows), inner], sizes, "left")
        weights = _grouped(step, values[1], second, [inner, columns], sizes, "right")
        assert not isinstance(weights, Computed)
        output = linear(step, step.plain(a), weights, None, part="product")
    whole = step.reshape(output, [sizes[one] for one in order], part="axes")
    return permute(whole, [order.index(one) for one in result])


def _letters(step: Step) -> tuple[list[str], str]:
    equation = _spelt_out(step, str(step.attribute("equation", "")).replace(" ", ""))
    sources, arrow, result = equation.partition("->")
    terms = sources.split(",")
    if not arrow:
        result = "".join(sorted(one for one in set(sources) - {","} if sources.count(one) == 1))
    letters = set("".join(terms)) - set(".")
    fits = len(terms) == len(step.inputs) and set(result) <= set(sources)
    if "." in equation or not fits or not all(one.isalpha() for one in letters):
        step.refuse(f"its equation is '{equation[:60]}'")
    for place, term in enumerate(terms):
        if len(term) != len(step.shape(place)) or len(set(term)) != len(term):
            step.refuse(f"'{term[:60]}' does not name each axis of input {place} once")
    return terms, result


def _spelt_out(step: Step, equation: str) -> str:
    """Return the equation with letters of their own for the axes of an ellipsis."""
    sources, arrow, result = equation.partition("->")
    terms = sources.split(",")
    if "..." not in sources or not arrow or len(terms) != len(step.inputs):
        return equation
    free = [one for one in ascii_letters if one not in equation]
    shapes = [step.shape(place) for place in range(len(terms))]
    ends: list[Shape] = []
    for place, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        before, dots, after = term.partition("...")
        count = len(shape) - len(before) - len(after)
        if not dots:
            continue
        if not 0 <= count <= len(free):
            return equation
        ends.append(shape[len(before) : len(before) + count])
        terms[place] = f"{before}{''.join(free[:count][::-1])}{after}"
    most = max(ends, key=len)
    if any(most[len(most) - len(one) :] != one for one in ends):
        step.refuse("it spreads the axes of its ellipsis over each other")
    result = result.replace("...", "".join(free[: len(most)][::-1]))
    return f"{','.join(terms)}->{result}"


def _alone(step: Step, value: Value, terms: list[str], place: int, result: str) -> Value:
    """Return a value without the axes that stand nowhere else: they are summed."""
    others = "".join(one for at, one in enumerate(terms) if at != place) + result
    axes = [axis for axis, one in enumerate(terms[place]) if one not in others]
    if not axes:
        return value
    remaining = [axis for axis in range(len(value.shape)) if axis not in axes]
    terms[place] = "".join(terms[place][axis] for axis in remaining)
    if not isinstance(value, Computed):
        return np.asarray(value.sum(tuple(axes)))
    if step.is_batched([value.shape[axis] for axis in axes]):
        step.refuse("it adds up the records, of which there may be any number")
    x = step.plain(permute(value, [*remaining, *axes]))
    return step.layer("Reduction", [x], part=f"sum_{place}", axis=len(remaining))


def _grouped(
    step: Step,
    value: Value,
    names: str,
    groups: Sequence[Sequence[str]],
    sizes: dict[str, int],
    part: str,
) -> Value:
    """Return a value with its axes in groups, each of which is one axis."""
    order = [names.index(one) for group in groups for one in group]
    shape = [prod(sizes[one] for one in group) for group in groups]
    moved = permute(value, order)
    if not isinstance(moved, Computed):
        return moved.reshape(shape)
    if all(len(group) == 1 for group in groups):
        return moved
    return step.reshape(moved, shape, part=part)


_MOST = 1024
"""Places of an axis: the matrix has a row for each number, and a column."""


@reads("DFT")
def dft(step: Step) -> Outputs:
    """Take a last axis of real parts alone, or of pairs with the imaginary ones."""
    x = step.value(0)
    count = len(x.shape)
    if count < 2 or x.shape[-1] not in (1, 2):
        step.refuse("its last axis must hold real parts, and imaginary parts beside them or none")
    axis_input = step.optional(2, "its axis") if step.opset >= 20 else None
    number = (
        step.attribute("axis", 1) if step.opset < 20 else -2 if axis_input is None else axis_input
    )
    axis = step.axis(int(np.ravel(number)[0]), count)
    if axis == count - 1:
        step.refuse("it transforms the axis of real and imaginary parts")
    size, parts = x.shape[axis], x.shape[-1]
    if step.is_open(size):
        step.refuse("it transforms along an axis of any length: give the input's whole shape")
    length = step.optional(1, "its length")
    places = size if length is None else int(np.ravel(length)[0])
    if not 0 < places <= _MOST or size > _MOST:
        step.refuse(f"it transforms {max(size, places)} places; {_MOST} is the most")
    onesided, inverse = (bool(step.attribute(name, 0)) for name in ("onesided", "inverse"))
    if onesided and inverse:
        step.refuse("it is the inverse of one half")
    weights = _matrix(size, parts, places, onesided, inverse)
    step.reading.room.take([weights], [])
    order = [one for one in range(count - 1) if one != axis] + [axis, count - 1]
    lead = [x.shape[one] for one in order[:-2]]
    flat = step.reshape(step.plain(permute(x, order)), (*lead, size * parts), part="numbers")
    spectrum = linear(step, flat, weights, None, part="product")
    whole = step.reshape(spectrum, (*lead, weights.shape[1] // 2, 2), part="parts")
    return permute(whole, [int(one) for one in np.argsort(order)])


def _matrix(size: int, parts: int, places_out: int, onesided: bool, inverse: bool) -> Array:
    """Return a column for each number that comes out; places beyond those wanted count nothing."""
    places = np.arange(size)[:, None]
    waves = np.arange(places_out // 2 + 1 if onesided else places_out)
    turns = np.exp((2j if inverse else -2j) * np.pi * (places * waves % places_out) / places_out)
    turns = np.where(places < places_out, turns / (places_out if inverse else 1), 0)
    rows = np.stack([turns, 1j * turns][:parts], 1)
    numbers = np.stack([rows.real, rows.imag], -1)
    return np.asarray(numbers.reshape(size * parts, -1).astype(np.float32))
