"""The number of records, which a model may leave open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sparknet.errors import FileError, SpecError, clean
from sparknet.graph.records import Outline
from sparknet.layers import TEST, Shape
from sparknet.onnx.geometry import reshaped
from sparknet.onnx.inputs import OPEN, input_shapes
from sparknet.onnx.source import Array, Source
from sparknet.proto import Model, caffe_pb2

LARGE = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181)
MEDIUM = (29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, *LARGE)
SMALL = (3, 5, 7, 11, 13, 17, 19, 23)
GIVE = "give the input's whole shape (shapes=)"
COMPUTES = f"it computes with the number of records, which the model leaves open: {GIVE}"
COMPUTES_WITH_LENGTH = COMPUTES.replace("records,", "records or the length of sequences,")


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
    """Return three choices of records, lengths and sides that divide no size of the model."""
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
    """Reshape a blob of a fixed number of records to another, if its records stay in line."""
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
    """Return a constant spread over a blob of another number of records than the file's."""
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
