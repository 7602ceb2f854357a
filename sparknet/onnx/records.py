"""The number of records, which a model may leave open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sparknet.errors import SpecError
from sparknet.graph.records import Outline
from sparknet.layers import TEST, Shape
from sparknet.onnx.geometry import reshaped
from sparknet.onnx.inputs import OPEN, input_shapes
from sparknet.onnx.sizes import RECORDS
from sparknet.onnx.source import Array, Source
from sparknet.proto import caffe_pb2

LARGE = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181)
MEDIUM = (29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, *LARGE)
SMALL = (3, 5, 7, 11, 13, 17, 19, 23)
GIVE = "give the input's whole shape (shapes=)"
COMPUTES = f"it computes with the number of records, which the model leaves open: {GIVE}"
COMPUTES_WITH_LENGTH = COMPUTES.replace("records,", "records or the length of sequences,")


PIXELS = (29, 31, 37, 41, 43, 47)
FEW_PIXELS = (11, 13, 17, 19, 23)
"""Heights and widths, as multiples of the stride of whole nets."""
STRIDE = 32


def example_sizes(
    source: Source, lengths: Sequence[str], images: Collection[str]
) -> Iterator[dict[str, int]]:
    """Return examples of the open sizes: primes that divide no size of the model.

    The second choice is for short tables and numbers that are met by chance, the last for nets that
    are too large for many records."""
    sizes = {size for one in source.constants.values() for size in one.shape}
    sizes |= {size for shape in source.inputs.values() for size in shape if isinstance(size, int)}
    usual = MEDIUM if lengths or images else LARGE
    choices = [
        (usual, usual, PIXELS),
        (usual[1:], usual[1:], FEW_PIXELS),
        (usual, SMALL, FEW_PIXELS),
        (SMALL, SMALL, FEW_PIXELS),
    ]
    for first, others, sides in choices if is_open(source) else choices[:1]:
        (records,) = _primes([one for one in first if not images or one not in sides], sizes, 1)
        rest = [one for one in others if one != records and (not images or one not in sides)]
        rest = _primes(rest, sizes, len(lengths))
        pixels = [STRIDE * one for one in _primes(sides, sizes, len(images))]
        names = (RECORDS, *lengths, *images)
        yield dict(zip(names, (records, *rest, *pixels), strict=True))


def _primes(primes: Sequence[int], sizes: Collection[int], count: int) -> list[int]:
    free = [one for one in primes if not any(size and size % one == 0 for size in sizes)]
    return free[:count] if len(free) >= count else list(primes[-count:])


def is_open(source: Source) -> bool:
    """Return whether an input leaves open how many records it has."""
    return any(not isinstance(size, int) for sizes in source.inputs.values() for size in sizes)


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
