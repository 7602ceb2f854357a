"""Plain numbers that a model computes from the length of its sequences: a division by it, say.

A reading has such a number as a constant.  Where it grows evenly with the length it is made in the
net from the length of the input, and what the model computes from it is made of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.onnx.folding import foldable
from sparknet.onnx.records import turns
from sparknet.onnx.source import Array, OnnxNode

Values = Mapping[str, Any]
_SIZES = ("Shape", "Size")
TRIED = (64, 12, 2, 1)
"""Lengths for which a number must be what it is expected to be, besides those of the readings."""


@dataclass(frozen=True)
class Incline:
    """A number that is `start`, and `slope` more for each place."""

    start: float
    slope: float

    def at(self, length: int) -> float:
        return self.start + self.slope * length


def numbers_of_length(
    nodes: Sequence[OnnxNode],
    operands: set[str],
    one: tuple[int, Values],
    other: tuple[int, Values],
    whole: Callable[[int], Values],
) -> dict[str, Incline]:
    """What the numbers among the operands that differ between two lengths are computed from.

    Empty where one of them does not grow evenly, or it is not certain: `whole` gives the values
    for a length that is fixed.
    """
    makers = {name: node for node in nodes for name in node.outputs}
    pair = (one[1], other[1])
    lines: dict[str, Incline] = {}
    for name in operands:
        if not differs(name, *pair) or any(values[name].size != 1 for values in pair):
            continue
        for seed in _seeds(name, makers, pair):
            if not _is_even(seed, makers, one, other):
                return {}
            first, second = (float(values[seed].flat[0]) for values in pair)
            slope = (second - first) / (other[0] - one[0])
            lines[seed] = Incline(first - slope * one[0], slope)
    return lines if lines and _hold(lines, whole) else {}


def differs(name: str, one: Values, other: Values) -> bool:
    a, b = one.get(name), other.get(name)
    if a is b or not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return False
    return not np.array_equal(a, b, equal_nan=True)


def _seeds(name: str, makers: Mapping[str, OnnxNode], pair: tuple[Values, Values]) -> Iterator[str]:
    """The first fractions on the way to a number."""
    node = makers.get(name)
    given = [one for one in node.inputs if differs(one, *pair)] if node is not None else []
    if given and all(_is_fraction(one, pair) for one in given):
        for one in given:
            yield from _seeds(one, makers, pair)
    else:
        yield name


def _is_fraction(name: str, pair: tuple[Values, Values]) -> bool:
    return all(values[name].size == 1 and values[name].dtype.kind == "f" for values in pair)


def _is_even(
    name: str,
    makers: Mapping[str, OnnxNode],
    one: tuple[int, Values],
    other: tuple[int, Values],
) -> bool:
    """Whether all that a number is computed from grows evenly, sizes as multiples of the length."""
    pair, left, seen = (one[1], other[1]), [name], set[str]()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        node = makers.get(name)
        a, b = (values[name] for values in pair)
        if node is None or a.shape != b.shape:
            return False
        if node.op in _SIZES:
            if not _are_multiples(a, b, one[0], other[0]):
                return False
            continue
        if not foldable(node.op) or turns(node, one, other):
            return False
        left += [its for its in node.inputs if its and differs(its, *pair)]
    return True


def _are_multiples(a: Array, b: Array, length: int, other: int) -> bool:
    apart = a != b
    return bool(
        np.all(a[apart] % length == 0) and np.array_equal(a[apart] // length * other, b[apart])
    )


def _hold(lines: Mapping[str, Incline], whole: Callable[[int], Values]) -> bool:
    """Whether the numbers are right for lengths that are no primes, too."""
    held = 0
    for length in TRIED:
        with suppress(FileError):  # too short for the model, or too long
            values = whole(length)
            held += length % 2 == 0
            for name, line in lines.items():
                found, wanted = values.get(name), line.at(length)
                if not isinstance(found, np.ndarray) or found.size != 1:
                    return False
                if abs(float(found.flat[0]) - wanted) > 1e-6 * max(abs(wanted), 1.0):
                    return False
    return held > 0
