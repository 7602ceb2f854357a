"""Models whose file fixes the number of records, as exporters write them unless they are told
otherwise: for any number of records, where each is computed by itself.

The sizes of inputs are opened again.  What else has the number in it is put right where it is
certain which axis is meant: records lie one behind the other, and each keeps its own values.
Everything else is left as the file has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sparknet.errors import SpecError
from sparknet.graph.records import Outline
from sparknet.layers import TEST, Shape
from sparknet.onnx.geometry import reshaped
from sparknet.onnx.inputs import OPEN, input_shapes
from sparknet.onnx.source import Array, Source
from sparknet.proto import caffe_pb2


def fixed_records(source: Source) -> int | None:
    """The number that is the first size of every input, if all sizes are fixed."""
    firsts = {sizes[0] if sizes else None for sizes in source.inputs.values()}
    known = all(isinstance(size, int) for sizes in source.inputs.values() for size in sizes)
    first = firsts.pop() if len(firsts) == 1 and known else None
    return first if isinstance(first, int) and first > 0 else None


def reopened(source: Source, records: int) -> Source:
    inputs = {name: (OPEN, *sizes[1:]) for name, sizes in source.inputs.items()}
    return replace(source, inputs=inputs, fixed=records)


def goes_on(net: caffe_pb2.NetParameter, outputs: Iterable[str]) -> bool:
    """Whether the net takes other numbers of records, and computes each by itself."""
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
        found = {name: _axis(shapes, grown, name) for name in (*bottoms, *layer.parameter.top)}
        if any(axis is None for axis in found.values()):
            return False
        if any(layer.mixes(shapes[name], found[name] or 0) for name in bottoms):
            return False
    return True


def _axis(shapes: Mapping[str, Shape], grown: Mapping[str, Shape], name: str) -> int | None:
    """The one axis that is longer with more records."""
    before, after = shapes.get(name), grown.get(name)
    if before is None or after is None or len(before) != len(after):
        return None
    pairs = enumerate(zip(before, after, strict=True))
    found = [axis for axis, (one, other) in pairs if one != other]
    return found[0] if len(found) == 1 else None


def _needed(net: caffe_pb2.NetParameter, outputs: Iterable[str]) -> set[str]:
    """The layers that the outputs depend on."""
    blobs, found = set(outputs), set[str]()
    for layer in reversed(net.layer):
        if not blobs.isdisjoint(layer.top):
            blobs.update(layer.bottom)
            found.add(layer.name)
    return found


def of_fixed(shape: Shape, records: int, fixed: int) -> Shape:
    """The shape that a blob has for as many records as the file says."""
    return tuple(
        size // records * fixed if size and size % records == 0 else size for size in shape
    )


def view(
    shape: Shape, wanted: Sequence[int], keep_zero: bool, records: int, fixed: int
) -> tuple[int, ...]:
    """ONNX's Reshape of a blob whose number of records the model has fixed to another one.

    Records lie one behind the other along the axis that has them; so they do in the new shape, if
    that has the same sizes before it.
    """
    axes = [axis for axis, size in enumerate(shape) if size and size % records == 0]
    if not axes:
        return reshaped(shape, wanted, keep_zero)
    if len(axes) > 1:
        raise ValueError("it has the number of records in several sizes")
    axis = axes[0]
    before = of_fixed(shape, records, fixed)
    after = reshaped(before, wanted, keep_zero)
    if after[:axis] != before[:axis] or len(after) <= axis or after[axis] % fixed:
        raise ValueError(
            f"{list(before)} becomes {list(after)}, which does not say where its records lie"
        )
    return (*after[:axis], after[axis] // fixed * records, *after[axis + 1 :])


def for_any(array: Array, axis: int, fixed: int) -> Array:
    """A constant that has the same values for each record: those of one."""
    if axis >= array.ndim or array.shape[axis] != fixed:
        return array
    first = np.take(array, [0], axis)
    return first if np.array_equal(np.broadcast_to(first, array.shape), array) else array


def beside(array: Array, shape: Shape, records: int, fixed: int) -> Array:
    """A constant that is spread over a blob whose number of records is another one than the
    file's."""
    for axis, size in enumerate(shape):
        place = axis - len(shape) + array.ndim
        if place >= 0 and size and size == records:
            array = for_any(array, place, fixed)
    return array


def whole(shape: Shape, wanted: Sequence[int], records: int, fixed: int) -> list[int]:
    """The sizes to which a blob is spread."""
    pairs = zip(shape[::-1], wanted[::-1], strict=False)
    found = [size if size == records and want == fixed else want for size, want in pairs]
    return [*wanted[: max(len(wanted) - len(shape), 0)], *found[::-1]]
