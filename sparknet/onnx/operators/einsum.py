"""Einsum: transposes and one matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters

import numpy as np

from sparknet.layers import Shape
from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.matrices import linear, product
from sparknet.onnx.operators.moving import turned
from sparknet.onnx.step import Outputs, Step, reads


@reads("Einsum")
def einsum(step: Step) -> Outputs:
    """The axes of two operands: in both and in the result, in both alone, and in one of them."""
    terms, result = _letters(step)
    values = [_alone(step, step.value(place), terms, place, result) for place in range(len(terms))]
    if len(values) == 1:
        return turned(values[0], [terms[0].index(one) for one in result])
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
        made = product(step, a, b, part="product")
    else:
        a = _grouped(step, values[0], first, [*([one] for one in rows), inner], sizes, "left")
        weights = _grouped(step, values[1], second, [inner, columns], sizes, "right")
        assert not isinstance(weights, Computed)
        made = linear(step, step.plain(a), weights, None, part="product")
    whole = step.reshape(made, [sizes[one] for one in order], part="axes")
    return turned(whole, [order.index(one) for one in result])


def _letters(step: Step) -> tuple[list[str], str]:
    equation = _spelt_out(step, str(step.attribute("equation", "")).replace(" ", ""))
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        result = "".join(sorted(one for one in set(left) - {","} if left.count(one) == 1))
    letters = set("".join(terms)) - set(".")
    fits = len(terms) == len(step.inputs) and set(result) <= set(left)
    if "." in equation or not fits or not all(one.isalpha() for one in letters):
        step.refuse(f"its equation is '{equation[:60]}'")
    for place, term in enumerate(terms):
        if len(term) != len(step.shape(place)) or len(set(term)) != len(term):
            step.refuse(f"'{term[:60]}' does not name each axis of input {place} once")
    return terms, result


def _spelt_out(step: Step, equation: str) -> str:
    """The equation with letters of their own for the axes of an ellipsis."""
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if "..." not in left or not arrow or len(terms) != len(step.inputs):
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
    """A value without the axes that stand nowhere else: they are summed."""
    others = "".join(one for at, one in enumerate(terms) if at != place) + result
    axes = [axis for axis, one in enumerate(terms[place]) if one not in others]
    if not axes:
        return value
    kept = [axis for axis in range(len(value.shape)) if axis not in axes]
    terms[place] = "".join(terms[place][axis] for axis in kept)
    if not isinstance(value, Computed):
        return np.asarray(value.sum(tuple(axes)))
    if step.is_batched([value.shape[axis] for axis in axes]):
        step.refuse("it adds up the records, of which there may be any number")
    x = step.plain(turned(value, [*kept, *axes]))
    return step.layer("Reduction", [x], part=f"sum_{place}", axis=len(kept))


def _grouped(
    step: Step,
    value: Value,
    names: str,
    groups: Sequence[Sequence[str]],
    sizes: dict[str, int],
    part: str,
) -> Value:
    """A value with its axes in groups, each of which is one axis."""
    order = [names.index(one) for group in groups for one in group]
    shape = [prod(sizes[one] for one in group) for group in groups]
    moved = turned(value, order)
    if not isinstance(moved, Computed):
        return moved.reshape(shape)
    if all(len(group) == 1 for group in groups):
        return moved
    return step.reshape(moved, shape, part=part)
