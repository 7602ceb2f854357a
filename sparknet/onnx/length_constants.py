"""Constants that change with the length of sequences, for any length.

Each is put into the net for the longest input that the model takes, and SizedLike cuts it off at
its end, or at its beginning where it is the last places of a longer one.  One that has two rows for
each place (what lies before and what lies behind, of relative positions) is cut off at both ends:
its halves meet in the middle.  Where all values of one grow evenly with the length (places that are
counted from the end), the length is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean
from sparknet.onnx.netlist import Computed, Growth, NetLayer, Netlist, Value
from sparknet.onnx.source import Array
from sparknet.onnx.step import Step


class Drifting(FileError):
    """All values of a constant grow by `slope` with each place of the input."""

    def __init__(self, path: str, problem: str, name: str, slope: int) -> None:
        super().__init__(path, problem)
        self.name, self.slope = name, slope


class FromTheEnd(FileError):
    """A constant is the last places of a longer one, along an axis."""

    def __init__(self, path: str, problem: str, name: str, axis: int) -> None:
        super().__init__(path, problem)
        self.name, self.axis = name, axis


def grown(step: Step, name: str, array: Array) -> Computed:
    """Return a constant that is as long as the input, or twice as long, as a blob."""
    end = step.reading.turned.get(name)
    if end is not None:
        growth = Growth(name, turned=end)
        last = _trim(step, np.flip(array, end), growth, "whole_from_the_end", "from_the_end")
        return step.layer("Reverse", [last], part="constant", axis=end)
    axis = _doubled(step, array.shape)
    if axis is None:
        return _trim(step, array, Growth(name), "whole", "constant")
    before, behind = np.split(array, 2, axis)
    first = _trim(step, np.flip(before, axis), Growth(name, axis, True), "whole_before", "before")
    turned = step.layer("Reverse", [first], part="turned", axis=axis)
    last = _trim(step, behind, Growth(name, axis), "whole_behind", "behind")
    return step.layer("Concat", [turned, last], part="constant", axis=axis)


def _doubled(step: Step, shape: tuple[int, ...]) -> int | None:
    lengths, anchors = step.reading.net.lengths, step.reading.net.anchors
    axes = [axis for axis, size in enumerate(shape) if size % 2 == 0 and size // 2 in lengths]
    loose = [size for size in shape if step.is_open(size) and size not in anchors]
    return axes[0] if len(axes) == len(loose) == 1 else None


def _trim(step: Step, array: Array, growth: Growth, whole: str, part: str) -> Computed:
    shape = {"dim": list(array.shape)}
    constant = step.layer("Parameter", [], [array], part=whole, shape=shape)
    step.reading.net.layers[-1].grows = growth
    return step.sized_by_inputs(constant, array.shape, part)


def with_length(step: Step, x: Computed, slope: float) -> Computed:
    """Return the values, and the length times a number."""
    length = times_length(step, slope)
    return step.layer("Bias", [x, length], part="with_length", axis=0)


def times_length(step: Step, slope: float) -> Computed:
    """Return the length times a number."""
    net = step.reading.net
    like, axis = net.anchors[net.lengths[0]]
    one = step.layer("Parameter", [], [np.full(1, slope)], part="step", shape={"dim": [1]})
    size = [{"bottom": 1, "axis": axis}]
    steps = step.layer("SizedLike", [one, like], part="steps", size=size)
    return step.layer("Reduction", [steps], part="length", operation="SUM", axis=0)


def length_number(step: Step, array: Array, start: int, slope: int) -> Computed:
    """Return `start` and `slope` times the length, in the shape of the constant."""
    length = times_length(step, slope)
    if start:
        length = step.pointwise("Power", of=length, part="number", shift=float(start))
    return step.reshape(length, array.shape, part="as_constant")


def grow(
    path: str, net: Netlist, values: Mapping[str, Value], longest: int, drifts: Mapping[str, int]
) -> None:
    """Let each constant that is as long as the input be as long as in `values`."""
    for layer in net.layers:
        if layer.grows is not None:
            slope = drifts.get(layer.grows.name, 0)
            whole = _part(values[layer.grows.name], layer.grows, slope * longest)
            _lengthen(path, net, layer, whole, longest)


def _part(whole: Value, growth: Growth, shift: int) -> Array | None:
    if not isinstance(whole, np.ndarray):
        return None
    whole = whole - whole.dtype.type(shift) if shift else whole
    if growth.turned is not None:
        return np.flip(whole, growth.turned) if growth.turned < whole.ndim else None
    if growth.axis is None:
        return whole
    if growth.axis >= whole.ndim or whole.shape[growth.axis] % 2:
        return None
    halves = np.split(whole, 2, growth.axis)
    return np.flip(halves[0], growth.axis) if growth.before else halves[1]


def _lengthen(path: str, net: Netlist, layer: NetLayer, whole: Array | None, longest: int) -> None:
    short, growth = layer.arrays[0], layer.grows
    assert growth is not None
    what = f"'{clean(growth.name)}' is a constant that changes with the length of the input"
    cure = "give the input's whole shape (shapes=)"
    if whole is None or whole.ndim != short.ndim:
        raise FileError(path, f"{what}: {cure}")
    pairs = list(zip(whole.shape, short.shape, strict=True))
    long = whole[tuple(slice(have if want != 1 else 1) for have, want in pairs)]
    long = np.ascontiguousarray(long, np.float32)
    piece = long[tuple(map(slice, short.shape))]
    if not np.array_equal(piece, short, equal_nan=True):
        problem = f"{what} otherwise than by its end: {cure}"
        slope = _slope(piece, short, longest - net.lengths[0]) if len(net.lengths) == 1 else 0
        if slope and growth.axis is None:
            raise Drifting(path, problem, growth.name, slope)
        end = _end(whole, short) if growth == Growth(growth.name) else None
        if end is not None:
            raise FromTheEnd(path, problem, growth.name, end)
        raise FileError(path, problem)
    layer.arrays = [long]
    layer.parameter.parameter_param.shape.dim[:] = long.shape
    net.blobs[layer.parameter.top[0]].stored = long.shape
    net.replan(layer)


def _end(whole: Array, short: Array) -> int | None:
    """Return the axis along which a constant is the last places of the whole one."""
    pairs = enumerate(zip(whole.shape, short.shape, strict=True))
    axes = [axis for axis, (have, want) in pairs if have > want > 1]
    if len(axes) != 1:
        return None
    last = np.flip(np.flip(whole, axes[0])[tuple(map(slice, short.shape))], axes[0])
    same = np.array_equal(last.astype(np.float32), short, equal_nan=True)
    return axes[0] if same else None


def _slope(long: Array, short: Array, places: int) -> int:
    """By how much all values grow with each place, if they do; else 0."""
    if long.shape != short.shape or not np.isfinite(short).all() or not places:
        return 0
    apart: Any = np.unique(long.astype(np.float64) - short)
    return int(apart[0]) // places if apart.size == 1 and apart[0] % places == 0 else 0
