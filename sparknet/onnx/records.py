"""How many records there are, which a model may leave open.

It is read for two numbers that no size of it has: what differs between the two depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from sparknet.errors import FileError, SpecError, clean
from sparknet.graph.records import Outline
from sparknet.layers import TEST, Shape
from sparknet.onnx.folding import fold, foldable
from sparknet.onnx.geometry import reshaped
from sparknet.onnx.inputs import OPEN, input_shapes
from sparknet.onnx.source import Array, OnnxNode, Source
from sparknet.proto import Model, caffe_pb2

LARGE = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181)
MEDIUM = (29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, *LARGE)
SMALL = (3, 5, 7, 11, 13, 17, 19, 23)
_GIVE = "give the input's whole shape (shapes=)"
COMPUTES = f"it computes with the number of records, which the model leaves open: {_GIVE}"
COMPUTES_WITH_LENGTH = COMPUTES.replace("records,", "records or the length of sequences,")
_COMPARING = ("Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min")
_NUMBERS = (1, 2, 3, 64, 10**6)
_NUMBER = re.compile(r"[0-9]+")
_MISFIT = re.compile(r"do not fit each other$|does not become \[[^]]*\]$")
_LARGE = re.compile(r" is the most$|the constants that the model computes are too large$")


PIXELS = (29, 31, 37, 41, 43, 47)
FEW_PIXELS = (11, 13, 17, 19, 23)
"""Heights and widths, as multiples of the stride of whole nets."""
_STRIDE = 32


def unlikely(
    source: Source,
    primes: Sequence[int],
    sizes_left: int = 1,
    images: int = 0,
    pixels: Sequence[int] = PIXELS,
) -> list[list[int]]:
    """Up to three choices of numbers of which no size of the model is a multiple: of the records,
    of the other sizes that are open, and of heights and widths."""
    if images:
        rest = unlikely(source, [one for one in primes if one not in pixels], sizes_left)
        sides = [[_STRIDE * one for one in many] for many in unlikely(source, pixels, images)]
        return [[*one, *more] for one, more in zip(rest, sides, strict=False)]
    sizes = {size for one in source.constants.values() for size in one.shape}
    sizes |= {size for shape in source.inputs.values() for size in shape if isinstance(size, int)}
    numbers = [one for one in primes if not any(size and size % one == 0 for size in sizes)]
    numbers = numbers if len(numbers) > sizes_left else list(primes[-sizes_left - 1 :])
    return [numbers[at : at + sizes_left] for at in range(min(3, len(numbers) - sizes_left + 1))]


def is_open(source: Source) -> bool:
    """Return whether an input leaves open how many records it has."""
    return any(not isinstance(size, int) for sizes in source.inputs.values() for size in sizes)


def check_alike(path: str, one: Model, other: Model, has_lengths: bool) -> None:
    """Refuse a model of which a layer differs with the number of records, or with lengths."""
    pairs = zip(one.net.layer, other.net.layer, one.arrays, other.arrays, strict=False)
    for layer, its, arrays, others in pairs:
        same = layer == its and len(arrays) == len(others)
        if same and all(_same(a, b) for a, b in zip(arrays, others, strict=True)):
            continue
        raise FileError(
            path,
            f"layer '{clean(layer.name)}' ({layer.type}): "
            f"{COMPUTES_WITH_LENGTH if has_lengths else COMPUTES}",
        )
    if len(one.net.layer) != len(other.net.layer):
        raise FileError(path, "has other layers for another number of records: give its shape")


def _same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other, equal_nan=True)


def check_compared(
    source: Source,
    nodes: Sequence[OnnxNode],
    one: tuple[int, Mapping[str, Any]],
    other: tuple[int, Mapping[str, Any]],
) -> None:
    """Refuse a model that computes with the number of records what does not grow evenly with it,
    as comparisons and roots do: other numbers than the two for which it was read give others."""
    for node in nodes:
        if foldable(node.op) and turns(node, one, other):
            raise source.refuse(node, COMPUTES)


def turns(
    node: OnnxNode, one: tuple[int, Mapping[str, Any]], other: tuple[int, Mapping[str, Any]]
) -> bool:
    """Return whether a node makes of values that grow evenly others that do not."""
    names = [name for name in (*node.inputs, *node.outputs) if name]
    lines: dict[str, _Line] = {}
    for name in names:
        start, end = one[1].get(name), other[1].get(name)
        if not isinstance(start, np.ndarray) or not isinstance(end, np.ndarray):
            return False
        if start.shape != end.shape:
            return False
        lines[name] = _Line(one[0], other[0], start, end)
    inputs = [lines[name] for name in node.inputs if name]
    if not any(line.slope.any() for line in inputs):
        return False
    numbers = set(_NUMBERS)
    if node.op in _COMPARING:
        for first, second in pairwise(inputs):
            numbers.update(first.meets(second))
    return any(_differ(node, lines, number) for number in numbers)


def _differ(node: OnnxNode, lines: Mapping[str, _Line], number: int) -> bool:
    try:
        results = fold(node, [lines[name].at(number) if name else None for name in node.inputs])
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return False  # as for the numbers for which the model was read, or else refused there
    pairs = [
        (array, lines[name].at(number))
        for name, array in zip(node.outputs, results, strict=False)
        if name
    ]
    return any(array.shape != line.shape or _is_apart(array, line) for array, line in pairs)


def _is_apart(array: Array, line: Array) -> bool:
    if array.dtype.kind == "b":
        return not np.array_equal(array, line)
    apart = np.abs(array.astype(np.float64) - line.astype(np.float64))
    return bool((apart > 0.01 * np.abs(line) + (0 if array.dtype.kind in "iu" else 0.01)).any())


class _Line:
    """Values that grow evenly with the number of records."""

    def __init__(self, first: int, second: int, start: Array, end: Array) -> None:
        self.first, self.start, self._exact = first, start.astype(np.float64), start
        still = (start == end) | ((start != start) & (end != end))  # infinity, too
        with np.errstate(invalid="ignore"):
            slope = (end.astype(np.float64) - self.start) / (second - first)
        self.slope = np.where(still, 0.0, slope)

    def at(self, number: int) -> Array:
        """What stands still is kept: the largest whole numbers have no double (Slice's ends)."""
        with np.errstate(invalid="ignore"):
            moved = (self.start + self.slope * (number - self.first)).astype(self._exact.dtype)
        return np.asarray(np.where(self.slope == 0, self._exact, moved))

    def meets(self, other: _Line) -> set[int]:
        """For which numbers of records some value is the other's."""
        apart, closing = np.broadcast_arrays(other.start - self.start, self.slope - other.slope)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = self.first + apart / closing
        return {
            int(n) for n in np.unique(crossings[np.isfinite(crossings)]) if n >= 1 and n == int(n)
        }


def counted(
    path: str,
    failed: Sequence[tuple[Sequence[int], FileError]],
    is_open: bool,
    where: str = "",
) -> FileError:
    """Return the first of two refusals, each with what stood for the open sizes: what depends on
    the number of records is in terms of N, and on the length of sequences in terms of L.
    """
    (sizes, error), *more = failed
    text = str(error).removeprefix(f"{path}: ")
    its = str(more[0][1]).removeprefix(f"{path}: ") if more else ""
    if _NUMBER.sub("", text) == _NUMBER.sub("", its):
        pairs = [*zip("NL", sizes, more[0][0], strict=False)]
        both = zip(_NUMBER.findall(text), _NUMBER.findall(its), strict=True)
        message = (
            one if one == other else _in_terms(int(one), int(other), pairs) for one, other in both
        )
        text = _NUMBER.sub(lambda _: next(message), text)
    else:
        text = re.sub(rf"\b{sizes[0]}\b", "N", text)
    if is_open and _MISFIT.search(text):
        text += f"{where}; the exporter may have fixed a size: {_GIVE}"
    elif is_open and _LARGE.search(text):
        text += f", and the model is read for several numbers of records: {_GIVE}"
    return FileError(path, text)


def _in_terms(one: int, other: int, sizes: Iterable[tuple[str, int, int]]) -> str:
    """So many times an open size and some more: of several the one with the least more."""
    terms: list[tuple[int, str]] = []
    for name, its, others in sizes:
        factor, rest = divmod(other - one, others - its)
        more = one - factor * its
        if not rest and factor > 0:
            product = name if factor == 1 else f"{factor}{name}"
            terms.append((abs(more), f"{product}{more:+d}" if more else product))
    return min(terms)[1] if terms else "?"


def fixed_records(source: Source) -> int | None:
    """Return the number that is the first size of every input, if all sizes are fixed."""
    firsts = {sizes[0] if sizes else None for sizes in source.inputs.values()}
    is_fixed = all(isinstance(size, int) for sizes in source.inputs.values() for size in sizes)
    first = firsts.pop() if len(firsts) == 1 and is_fixed else None
    return first if isinstance(first, int) and first > 0 else None


def reopened(source: Source, records: int) -> Source:
    inputs = {name: (OPEN, *sizes[1:]) for name, sizes in source.inputs.items()}
    return replace(source, inputs=inputs, fixed=records)


def goes_on(net: caffe_pb2.NetParameter, outputs: Iterable[str]) -> bool:
    """Return whether the net takes other numbers of records, and computes each by itself."""
    inputs = dict(input_shapes(net))
    outline = Outline(net.layer, TEST)
    try:
        axes = outline.input_axes(inputs)
    except SpecError:
        return False
    more = {
        name: (*shape[: axes[name]], 2 * shape[axes[name]] + 1, *shape[axes[name] + 1 :])
        for name, shape in inputs.items()
    }
    shapes, grown = outline.axes(inputs, axes)[0], outline.axes(more, axes)[0]
    needed, fed = _needed(net, outputs), set(inputs)
    for layer in outline.layers:
        bottoms = [name for name in layer.parameter.bottom if name in fed]
        if not bottoms or layer.name not in needed:
            continue
        fed.update(layer.parameter.top)
        places = {name: _axis(shapes, grown, name) for name in (*bottoms, *layer.parameter.top)}
        if any(axis is None for axis in places.values()):
            return False
        if any(layer.mixes(shapes[name], places[name] or 0) for name in bottoms):
            return False
    return True


def _axis(shapes: Mapping[str, Shape], grown: Mapping[str, Shape], name: str) -> int | None:
    """Return the one axis that is longer with more records."""
    before, after = shapes.get(name), grown.get(name)
    if before is None or after is None or len(before) != len(after):
        return None
    pairs = enumerate(zip(before, after, strict=True))
    axes = [axis for axis, (one, other) in pairs if one != other]
    return axes[0] if len(axes) == 1 else None


def _needed(net: caffe_pb2.NetParameter, outputs: Iterable[str]) -> set[str]:
    """Return the layers that the outputs depend on."""
    blobs, names = set(outputs), set[str]()
    for layer in reversed(net.layer):
        if not blobs.isdisjoint(layer.top):
            blobs.update(layer.bottom)
            names.add(layer.name)
    return names


def of_fixed(shape: Shape, records: int, fixed: int) -> Shape:
    """Return the shape that a blob has for as many records as the file says."""
    return tuple(
        size // records * fixed if size and size % records == 0 else size for size in shape
    )


def view(
    shape: Shape, target: Sequence[int], keep_zero: bool, records: int, fixed: int
) -> tuple[int, ...]:
    """ONNX's Reshape of a blob whose number of records the model has fixed to another one.

    Records lie one behind the other along the axis that has them; so they do in the new shape, if
    that has the same sizes before it.
    """
    axes = [axis for axis, size in enumerate(shape) if size and size % records == 0]
    if not axes:
        return reshaped(shape, target, keep_zero)
    if len(axes) > 1:
        raise ValueError("it has the number of records in several sizes")
    axis = axes[0]
    before = of_fixed(shape, records, fixed)
    after = reshaped(before, target, keep_zero)
    if after[:axis] != before[:axis] or len(after) <= axis or after[axis] % fixed:
        raise ValueError(
            f"{list(before)} becomes {list(after)}, which does not say where its records lie"
        )
    return (*after[:axis], after[axis] // fixed * records, *after[axis + 1 :])


def for_any(array: Array, axis: int, fixed: int) -> Array:
    """Return a constant that has the same values for each record: those of one."""
    if axis >= array.ndim or array.shape[axis] != fixed:
        return array
    first = np.take(array, [0], axis)
    return first if np.array_equal(np.broadcast_to(first, array.shape), array) else array


def beside(array: Array, shape: Shape, records: int, fixed: int) -> Array:
    """Return a constant that is spread over a blob whose number of records is another one than the
    file's."""
    for axis, size in enumerate(shape):
        place = axis - len(shape) + array.ndim
        if place >= 0 and size and size == records:
            array = for_any(array, place, fixed)
    return array


def whole(shape: Shape, target: Sequence[int], records: int, fixed: int) -> list[int]:
    """Return the sizes to which a blob is spread."""
    pairs = zip(shape[::-1], target[::-1], strict=False)
    sizes = [size if size == records and want == fixed else want for size, want in pairs]
    return [*target[: max(len(target) - len(shape), 0)], *sizes[::-1]]
