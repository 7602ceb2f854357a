"""Pieces of blobs along an axis: Slice and Split."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from sparknet.onnx.geometry import slice_arguments, slices, split_sizes
from sparknet.onnx.netlist import Computed, NetLayer
from sparknet.onnx.sizes import Size, is_same
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

MOST_PLACES = 1 << 20
"""Values of an axis that are picked one by one."""
_ALL = 2**31 - 1
"""An end that means all of an axis, however many there are."""


@reads("Slice")
def slice_(step: Step) -> Outputs:
    inputs: list[Array | None] = [None]
    for place in range(1, len(step.inputs)):
        is_bound = place < 3 and step.has(place)
        sizes = np.array(step.sizes(place, "its bounds"), object) if is_bound else None
        inputs.append(step.optional(place, "its axes") if sizes is None else sizes)
    x = step.blob()
    starts, ends, axes, steps = slice_arguments(step.node, inputs)
    ranges = slices(x.shape, starts, ends, axes, steps)
    sliced = range(len(starts)) if axes is None else [step.axis(one, len(x.shape)) for one in axes]
    ends_open: dict[int, tuple[int, int]] = {}
    counts: dict[int, tuple[int, int]] = {}
    for axis, start, end in zip(sliced, starts, ends, strict=True):
        size = x.shape[axis]
        start, end = _from_the_end(start, size), _from_the_end(end, size)
        to_end = is_same(end, size) or end >= _ALL
        whole = ranges[axis] == range(size) and start in (0, -size) and to_end
        if step.is_batched([size]) and not whole:
            step.refuse("it takes some of the records, which no layer does")
        if whole:
            continue
        if isinstance(start, Size) or (
            isinstance(end, Size) and (start < 0 or ranges[axis].step != 1)
        ):
            step.refuse("its bounds depend on a size that the model leaves open: give its shape")
        if isinstance(end, Size):
            counts[axis] = start, end - start
        elif step.is_open(size) and ranges[axis].step == 1 and (to_end or end < 0):
            ends_open[axis] = int(start), 0 if to_end else int(end)
    if not all(ranges):
        return np.zeros([len(one) for one in ranges], np.float32)
    for axis, (start, end) in ends_open.items():
        x, ranges[axis] = _to_the_end(step, x, axis, start, end), range(0)
    for axis, (start, count) in counts.items():
        x, ranges[axis] = _as_long(step, x, axis, start, count, f"cut_{axis}"), range(0)
    cuts = [axis for axis, one in enumerate(ranges) if one and one != range(x.shape[axis])]
    for axis in cuts:
        x = gather_places(step, x, axis, ranges[axis], part=None if axis == cuts[-1] else str(axis))
    return x


def _from_the_end(place: int, size: int) -> int:
    """Return a bound as long as an axis of any size as one that counts from its end."""
    rest = place - size
    if not isinstance(place, Size) or isinstance(rest, Size):
        return place
    return rest if rest < 0 else _ALL


def _to_the_end(step: Step, x: Computed, axis: int, start: int, end: int) -> Computed:
    """Return a slice of any length, to the end or so many values before it."""
    if start < 0:
        return step.layer(
            "Gather", [x], part=f"last_{axis}", axis=axis, index=list(range(start, end))
        )
    rest = from_start(step, x, axis, start - end)
    if not end:
        return rest
    offsets = [start] + [0] * (len(x.shape) - axis - 1)
    return step.layer("Crop", [x, rest], part=f"until_{axis}", axis=axis, offset=offsets)


def from_start(step: Step, x: Computed, axis: int, start: int) -> Computed:
    """Return what begins at a place."""
    top = f"{step.node.outputs[0]}_{axis}"
    tops = [f"{top}_before", f"{top}_after"]
    before, rest = step.layers(
        "Slice", [x], tops=tops, part=f"from_{axis}", axis=axis, slice_point=[start]
    )
    step.reading.net.left_over.add(before.name)
    return rest


def _as_long(
    step: Step, x: Computed, axis: int, start: int, count: int, part: str | None
) -> Computed:
    """So many values from a place on as an input has, of any length."""
    rest = from_start(step, x, axis, start) if start else x
    return step.sized(rest, (*x.shape[:axis], count, *x.shape[axis + 1 :]), part=part)


def gather_places(
    step: Step, x: Computed, axis: int, places: Sequence[int], part: str | None = None
) -> Computed:
    """Return the values at these places of an axis."""
    size = x.shape[axis]
    if not places:
        step.refuse("nothing is left")
    if min(places) < -size or max(places) >= size:
        step.refuse(f"a place is out of range for an axis of size {size}")
    if max(places) < 0 and step.is_open(size):
        return step.layer("Gather", [x], part=part, axis=axis, index=list(places))
    first, count = places[0] % size, len(places)
    row = range(first, first + count)
    if places == row or all(one % size == place for one, place in zip(places, row, strict=True)):
        if count < size and count in step.reading.net.lengths and not step.is_open(first):
            return _as_long(step, x, axis, first, count, part)
        return slice_axis(step, x, axis, first, first + count, part)
    if count > MOST_PLACES:
        step.refuse(f"it picks {count} values; {MOST_PLACES} are the most")
    places = [one % size for one in places]
    if step.is_open(size) and places == [*range(size)][::-1]:
        return step.layer("Reverse", [x], part=part, axis=axis)
    maker = step.maker(x)
    if maker is not None and maker.type == "Gather" and int(maker.options.axis) == axis:
        # Values that were picked before: both at once.
        net, picked = step.reading.net, list(maker.options.index)
        source = net.blobs[maker.parameter.bottom[0]]
        if not net.is_read(x):
            net.remove(maker)
        return gather_places(step, source, axis, [picked[one] for one in places], part)
    return step.layer("Gather", [x], part=part, axis=axis, index=places)


def slice_axis(
    step: Step, x: Computed, axis: int, start: int, end: int, part: str | None = None
) -> Computed:
    """Return a top of a Slice layer: a new one, or one that has this piece left."""
    size = x.shape[axis]
    if (start, end) == (0, size):
        return x
    if step.is_open(size):  # there may be no more than these
        return step.layer("Gather", [x], part=part, axis=axis, index=list(range(start, end)))
    points = [point for point in (start, end) if 0 < point < size]
    top = step.node.outputs[0] + ("" if part is None else f"_{part}")
    piece = _slice_again(step, x, axis, range(start, end), top) if x.is_plain else None
    if piece is not None:
        return piece
    tops = [f"{top}_before"] * (start > 0) + [top] + [f"{top}_after"] * (end < size)
    parts = step.layers("Slice", [x], tops=tops, part=part, axis=axis, slice_point=points)
    middle = parts[int(start > 0)]
    step.reading.net.left_over.update(one.name for one in parts if one is not middle)
    return middle


def _slice_again(step: Step, x: Computed, axis: int, target: range, top: str) -> Computed | None:
    """Return a piece of what a Slice of the same values has left, copied once."""
    net = step.reading.net
    for layer in net.layers:
        options, bottom = layer.parameter.slice_param, list(layer.parameter.bottom)
        if layer.type != "Slice" or bottom != [x.name] or options.axis != axis:
            continue
        points = [0, *options.slice_point, x.shape[axis]]
        if len(points) != len(layer.parameter.top) + 1:
            return None
        for place, name in enumerate(layer.parameter.top):
            first, last = points[place], points[place + 1]
            if name not in net.left_over or not first <= target.start < target.stop <= last:
                continue
            if (first, last) == (target.start, target.stop):
                net.left_over.remove(name)
                return net.blobs[name]
            return _divided(step, layer, place, (first, last), target, top)
    return None


def _divided(
    step: Step, layer: NetLayer, place: int, piece: tuple[int, int], target: range, top: str
) -> Computed:
    """Return the target part of a top that is left over; the rest still is."""
    net, name = step.reading.net, layer.parameter.top[place]
    (first, last), tops = piece, list(layer.parameter.top)
    before, after = first < target.start, target.stop < last
    blob = net.unique(top, "blob")
    names = [name, blob] if before else [blob, name]
    if before and after:
        names.append(net.unique(f"{top}_after", "blob"))
        net.left_over.add(names[-1])
    points = list(layer.parameter.slice_param.slice_point)
    points[place:place] = [one for one in (target.start, target.stop) if first < one < last]
    tops[place : place + 1] = names
    del layer.parameter.slice_param.slice_point[:], layer.parameter.top[:]
    layer.parameter.slice_param.slice_point.extend(points)
    layer.parameter.top.extend(tops)
    net.divide(layer)
    return net.blobs[blob]


@reads("Split")
def split(step: Step) -> Outputs:
    x = step.blob()
    axis = step.axis(int(step.attribute("axis", 0)), len(x.shape))
    sizes_input: list[Array | None] = [None, step.optional(1, "the sizes of its pieces")]
    sizes = split_sizes(step.node, sizes_input, x.shape[axis])
    if sum(sizes) != x.shape[axis] or len(sizes) != len(step.node.outputs):
        step.refuse(f"{sizes} are not the pieces of an axis of size {x.shape[axis]}")
    if step.is_batched([x.shape[axis]]) and len(sizes) > 1:
        step.refuse("it splits the records, which no layer does")
    if len(sizes) == 1:
        return [x]
    points = [*accumulate(sizes)][:-1]
    names = [name or f"{step.node.name}_{place}" for place, name in enumerate(step.node.outputs)]
    parts = step.layers("Slice", [x], tops=names, axis=axis, slice_point=points)
    return list(parts)


# -- several into one ------------------------------------------------------------------------
