"""Constants that change with the length of sequences, cut out of those for the longest input.

A constant with two rows for each place (relative positions) is cut off at both ends.  One whose
values grow evenly with the length gets the length added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.onnx.netlist import Computed, NetLayer, Value
from sparknet.onnx.sizes import affine
from sparknet.onnx.source import Array
from sparknet.onnx.step import Step
from sparknet.onnx.value_types import constant_type, set_type

_ROUNDING = 1e-6
Part = Callable[[Array], Array]


@dataclass(frozen=True)
class Growth:
    """A layer that holds a constant as long as the input, or a part of one."""

    layer: NetLayer
    name: str
    slope: int
    """By how much all values grow with each place of the input."""
    part: Part


def grown(step: Step, name: str, array: Array) -> Computed:
    """Return a constant that is as long as the input, or twice as long, as a blob."""
    axis = _doubled(step, array.shape)
    if axis is not None:
        before, behind = _halves(axis)
        first = _trim(step, name, array, "whole_before", "before", before)
        turned = step.layer("Reverse", [first], part="turned", axis=axis)
        last = _trim(step, name, array, "whole_behind", "behind", behind)
        return step.layer("Concat", [turned, last], part="constant", axis=axis)
    shorter = like(step.reading.folds.shorter.array(name), array)
    slope = _slope(array, shorter) if len(step.reading.net.lengths) == 1 else 0
    if slope:
        still = array - array.dtype.type(slope * step.reading.net.lengths[0])
        blob = _trim(step, name, still, "whole", "constant", slope=slope)
        return step.layer("Bias", [blob, _times_length(step, slope)], part="with_length", axis=0)
    end = _end(array, shorter)
    if end is None:
        return _trim(step, name, array, "whole", "constant")
    last = _trim(step, name, array, "whole_from_the_end", "from_the_end", _flip(end))
    return step.layer("Reverse", [last], part="constant", axis=end)


def _times_length(step: Step, slope: float) -> Computed:
    """Return the length times a number."""
    net = step.reading.net
    like, axis = net.anchors[net.lengths[0]]
    one = step.layer("Parameter", [], [np.full(1, slope)], part="step", shape={"dim": [1]})
    size = [{"bottom": 1, "axis": axis}]
    steps = step.layer("SizedLike", [one, like], part="steps", size=size)
    return step.layer("Reduction", [steps], part="length", operation="SUM", axis=0)


def of_length(step: Step, name: str, value: Value | None) -> Value | None:
    """Return a number that changes with the length as what the net makes of the length."""
    reading = step.reading
    if name in reading.grown:
        return reading.grown[name]
    if not isinstance(value, np.ndarray) or value.size != 1 or len(reading.net.lengths) != 1:
        return value
    if not reading.folds.depends_on_length(name):
        return value
    (node, shape), sizes = reading.folds.nodes[name], reading.symbolic.get(name, np.zeros(1))
    line = affine(sizes.flat[0], reading.net.size_of(reading.net.lengths[0]))
    if line is not None:
        number = _length_number(Step(reading, node, []), value, *line)
        reading.grown[name] = set_type(number, constant_type(value))
    elif shape is None:
        inputs = [of_length(step, one, reading.values.get(one)) for one in node.inputs]
        if any(isinstance(one, Computed) for one in inputs):
            output = reading.converted(node, inputs)[node.outputs.index(name)]
            if isinstance(output, Computed):
                reading.grown[name] = output
    return reading.grown.get(name, value)


def _length_number(step: Step, array: Array, start: int, slope: int) -> Computed:
    """Return `start` and `slope` times the length, in the shape of the constant."""
    length = _times_length(step, slope)
    if start:
        length = step.pointwise("Power", of=length, part="number", shift=float(start))
    return step.reshape(length, array.shape, part="as_constant")


def _doubled(step: Step, shape: tuple[int, ...]) -> int | None:
    lengths, anchors = step.reading.net.lengths, step.reading.net.anchors
    axes = [axis for axis, size in enumerate(shape) if size % 2 == 0 and size // 2 in lengths]
    loose = [size for size in shape if step.is_open(size) and size not in anchors]
    return axes[0] if len(axes) == len(loose) == 1 else None


def _halves(axis: int) -> tuple[Part, Part]:
    """Return what lies before the middle, from there to the beginning, and what lies behind."""
    return (
        lambda whole: np.flip(np.split(whole, 2, axis)[0], axis),
        lambda whole: np.split(whole, 2, axis)[1],
    )


def _flip(axis: int) -> Part:
    return lambda whole: np.flip(whole, axis)


def _trim(
    step: Step,
    name: str,
    array: Array,
    whole: str,
    part: str,
    cut: Part = np.asarray,
    slope: int = 0,
) -> Computed:
    array, reading = cut(array), step.reading
    shape = {"dim": list(array.shape)}
    constant = step.layer("Parameter", [], [array], part=whole, shape=shape)
    reading.growths.append(Growth(reading.net.layers[-1], name, slope, cut))
    return step.sized_by_inputs(constant, array.shape, part)


def like(whole: Array, short: Array) -> Array:
    """Return a constant that has one value along an axis where the other has one."""
    return whole[tuple(slice(1 if size == 1 else None) for size in short.shape[: whole.ndim])]


def begins(long: Array, short: Array) -> bool:
    """Return whether a constant begins as a shorter one; products of matrices round by size."""
    piece, short = long[tuple(map(slice, short.shape))], short.astype(np.float64)
    slack = _ROUNDING * np.abs(short, where=np.isfinite(short), out=np.zeros_like(short)).max()
    return piece.shape == short.shape and np.allclose(piece, short, 0, slack, equal_nan=True)


def _end(whole: Array, short: Array) -> int | None:
    """Return the axis along which a constant has a shorter one at its end, not at its beginning."""
    if whole.ndim != short.ndim or begins(whole, short):
        return None
    axes = [axis for axis, size in enumerate(short.shape) if whole.shape[axis] > size > 1]
    turned = len(axes) == 1 and begins(np.flip(whole, axes[0]), np.flip(short, axes[0]))
    return axes[0] if turned else None


def _slope(array: Array, shorter: Array) -> int:
    """Return by how much all values grow with one place more, if they do; else 0."""
    if array.ndim != shorter.ndim:
        return 0
    piece = array[tuple(map(slice, shorter.shape))]
    if piece.shape != shorter.shape or not np.isfinite(shorter).all():
        return 0
    apart: Any = np.unique(piece.astype(np.float64) - shorter)
    return int(apart[0]) if apart.size == 1 and apart[0] % 1 == 0 else 0
