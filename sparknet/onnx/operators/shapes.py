"""Operators that change shapes or move values: Reshape, Transpose, Pad, Concat, Expand, Tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from sparknet.layers import Shape
from sparknet.onnx.geometry import reshaped
from sparknet.onnx.limits import spread
from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.slicing import MOST_PLACES, gather_places, slice_axis
from sparknet.onnx.records import for_any, view, whole
from sparknet.onnx.sizes import FixedSize, evaluate, symbols
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads
from sparknet.onnx.value_types import constant_type


@reads("Identity", "StopGradient")
def same(step: Step) -> Outputs:
    return step.value(0)


@reads("Dropout")
def dropout(step: Step) -> Outputs:
    """Return a layer that drops in training, if the node says that it was exported for that."""
    if step.is_read(1):
        step.refuse("its mask is read, which no layer gives")
    ratio = step.attribute("ratio", 0.5)
    if step.opset >= 12:
        share = step.optional(1, "the ratio")
        training = step.optional(2, "whether it is in training")
        if training is None or not np.any(training):
            return step.value(0)
        ratio = 0.5 if share is None else float(np.ravel(share)[0])
        if ratio:
            step.reading.dropping.append(step.node.name)
    if not 0 <= ratio < 1:
        step.refuse(f"its ratio is {ratio:g}")
    return step.pointwise("Dropout", dropout_ratio=ratio) if ratio else step.value(0)


@reads("Reshape")
def reshape(step: Step) -> Outputs:
    target = step.attribute("shape")
    if target is None:
        target = step.sizes(1, "the new shape")
    shape, keep_zero = step.shape(0), bool(step.attribute("allowzero"))
    fixed = step.reading.source.fixed
    if fixed:
        return _view(step, view(shape, target, keep_zero, step.batch, fixed))
    try:
        return _view(step, reshaped(shape, target, keep_zero))
    except ValueError:
        _solve(step, shape, target)
        raise


def _solve(step: Step, shape: Shape, target: Sequence[int]) -> None:
    """Ask for the height or width with which a model fits that its exporter fixed."""
    sizes = [shape[place] if size == 0 else size for place, size in enumerate(target)]
    more = prod(shape) // prod(sizes) if min(sizes, default=0) > 0 else 0
    names = symbols(more) if more * prod(sizes) == prod(shape) else set()
    if len(names) == 1 and names <= step.reading.images.keys():
        (name,) = names
        sides = range(_SIDE, _MOST_SIDES, _SIDE)
        side = next((one for one in sides if evaluate(more, {name: one}) == 1), None)
        if side is not None:
            raise FixedSize(step.reading.source.path, name, side)


@reads("Flatten")
def flatten(step: Step) -> Outputs:
    shape = step.shape(0)
    axis = int(step.attribute("axis", 1))
    axis = axis if axis == len(shape) else step.axis(axis, len(shape))
    return _view(step, (prod(shape[:axis]), prod(shape[axis:])))


@reads("Squeeze")
def squeeze(step: Step) -> Outputs:
    shape, axes = step.shape(0), _axes(step)
    dropped = {axis for axis, size in enumerate(shape) if size == 1}
    if axes is not None:
        dropped = {step.axis(axis, len(shape)) for axis in axes}
        if any(shape[axis] != 1 for axis in dropped):
            step.refuse(f"axes {sorted(dropped)} of {list(shape)} are not all of size 1")
    return _view(step, [size for axis, size in enumerate(shape) if axis not in dropped])


@reads("Unsqueeze")
def unsqueeze(step: Step) -> Outputs:
    shape, axes = list(step.shape(0)), _axes(step)
    if axes is None:
        step.refuse("it names no axes")
    count = len(shape) + len(axes)
    for axis in sorted(step.axis(axis, count) for axis in axes):
        shape.insert(axis, 1)
    return _view(step, shape)


def _axes(step: Step) -> list[int] | None:
    if step.attribute("axes") is not None:
        return [int(axis) for axis in step.attribute("axes")]
    listed = step.optional(1, "its axes")
    return None if listed is None else [int(axis) for axis in np.ravel(listed)]


def _view(step: Step, shape: tuple[int, ...] | list[int]) -> Computed:
    return step.reshape(step.blob(), shape)


_SIDE, _MOST_SIDES = 16, 1024
"""Heights and widths that a model may want, in pixels."""
MOST_PIXELS = 8192
"""The largest height or width of images whose places a model counts."""


@reads("Transpose")
def transpose(step: Step) -> Outputs:
    """Done when somebody reads the value in order: two transposes may cancel."""
    value = step.value(0)
    axes = len(value.shape)
    order = [int(axis) for axis in step.attribute("perm", range(axes)[::-1])]
    if sorted(order) != list(range(axes)):
        step.refuse(f"perm {order} is no order of {axes} axes")
    return permute(value, order)


def permute(value: Value, order: Sequence[int]) -> Value:
    """Return a value with its axes in another order; no layer is made for it yet."""
    if not isinstance(value, Computed):
        return np.transpose(value, order)
    pads = value.pads
    if pads is not None:
        before, after = (tuple(one[axis] for axis in order) for one in pads)
        pads = before, after
    if value.order is not None:
        order = [value.order[axis] for axis in order]
    same = None if list(order) == list(range(len(order))) else tuple(order)
    return Computed(value.name, value.stored, same, pads)


@reads("Pad")
def pad(step: Step) -> Outputs:
    """Zeros around an image wait for a layer that pads; the rest is made here."""
    shape = step.shape(0)
    padding = step.attribute("pads", step.attribute("paddings"))
    if padding is None:
        padding = np.ravel(step.constant(1, "the padding")).tolist()
    axes = np.ravel(step.constant(3, "its axes")).tolist() if step.has(3) else None
    before, after = _pads(step, [int(one) for one in padding], axes, len(shape))
    mode = step.attribute("mode", "constant")
    x = step.value(0)
    if min(*before, *after, 0) < 0:
        if mode != "constant" and max(*before, *after) > 0:
            step.refuse("it pads by its own values and cuts at once")
        x = _padded_below(step, before, after)
        before, after = ([max(one, 0) for one in pads] for pads in (before, after))
    if not any(before) and not any(after):
        return x
    if mode != "constant":
        return _padded_by_places(step, before, after, mode)
    number = step.attribute("value", 0.0)
    if step.has(2):
        number = float(np.ravel(step.constant(2, "the value of the padding"))[0])
    assert isinstance(x, Computed)
    order = x.order or range(len(shape))
    outside = [axis for axis, own in enumerate(order) if own < 2]  # records and channels
    spatial = len(shape) > 2 and not any(before[axis] or after[axis] for axis in outside)
    if number == 0 and spatial and x.pads is None:
        return Computed(x.name, x.stored, x.order, (tuple(before), tuple(after)))
    return _padded_by_blocks(step, step.plain(x), before, after, float(number))


def _pads(
    step: Step, values: list[int], axes: list[int] | None, count: int
) -> tuple[list[int], list[int]]:
    padded = list(range(count)) if axes is None else [step.axis(axis, count) for axis in axes]
    if len(values) != 2 * len(padded):
        step.refuse(f"{len(values)} pads for {len(padded)} axes")
    before, after = [0] * count, [0] * count
    for place, axis in enumerate(padded):
        before[axis], after[axis] = values[place], values[place + len(padded)]
    if max((abs(pad) for pad in values), default=0) > MOST_PLACES:
        step.refuse(f"{max(values)} is too much padding")
    return before, after


def _padded_below(step: Step, before: list[int], after: list[int]) -> Computed:
    """Padding by less than nothing cuts off."""
    x = step.blob()
    for axis in range(len(x.shape)):
        low, high = min(before[axis], 0), min(after[axis], 0)
        if low or high:
            x = slice_axis(step, x, axis, -low, x.shape[axis] + high, part=f"cut_{axis}")
    return x


def _padded_by_places(step: Step, before: list[int], after: list[int], mode: str) -> Computed:
    if mode not in ("reflect", "edge", "wrap"):
        step.refuse(f"its mode is '{mode}'")
    x = step.blob()
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        if low or high:
            places = np.pad(np.arange(x.shape[axis]), (low, high), mode=mode)  # type: ignore[call-overload]
            x = gather_places(step, x, axis, places.tolist(), part=f"axis_{axis}")
    return x


def _padded_by_blocks(
    step: Step, x: Computed, before: list[int], after: list[int], number: float
) -> Computed:
    """Blocks of one number before and after."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        if not low and not high:
            continue
        pieces: list[Value] = [x]
        for size, place in ((low, 0), (high, len(pieces))):
            if size:
                shape = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
                block = np.broadcast_to(np.float32(number), shape)
                pieces.insert(0 if place == 0 else len(pieces), block)
        x = joined(step, pieces, axis, part=f"padded_{axis}")
    return x


# -- pieces ----------------------------------------------------------------------------------


@reads("Concat")
def concat(step: Step) -> Outputs:
    values = [step.value(place) for place in range(len(step.inputs))]
    axes = max(len(one.shape) for one in values)
    values = [one for one in values if isinstance(one, Computed) or one.size]
    first, last = values[0], values[-1]
    rows = np.arange(int(step.batch))[:, None]
    if (
        len(values) == 2
        and isinstance(last, Computed)
        and last.shape == rows.shape
        and last.integral
    ):
        is_gathered = all(one.op == "GatherND" for one in step.readers_of(0))
        if is_gathered and not isinstance(first, Computed) and np.array_equal(first, rows):
            return replace(last, rows=-1)
    axis = step.axis(int(step.attribute("axis", 1)), axes)
    if fixed := step.reading.source.fixed:
        if any(step.is_batched(one.shape[axis : axis + 1]) for one in values):
            step.refuse("it puts records behind others")
        values = [one if isinstance(one, Computed) else for_any(one, 0, fixed) for one in values]
    return joined(step, values, axis)


def joined(step: Step, values: Sequence[Value], axis: int, part: str | None = None) -> Computed:
    order = values[0].order if isinstance(values[0], Computed) else None
    lazy = [one for one in values if isinstance(one, Computed) and one.pads is None]
    if order is not None and len(lazy) == len(values) and all(one.order == order for one in lazy):
        stored = [Computed(one.name, one.stored) for one in lazy]
        output = step.layer("Concat", stored, part=part, axis=order[axis])
        return Computed(output.name, output.stored, order)
    first = next(step.plain(one) for one in values if isinstance(one, Computed))
    blobs = [
        step.plain(one) if isinstance(one, Computed) else _beside(step, one, first, axis, place)
        for place, one in enumerate(values)
    ]
    if len(blobs) == 1:
        return blobs[0]
    return step.layer("Concat", blobs, part=part, axis=axis)


def _beside(step: Step, array: Array, other: Computed, axis: int, place: int) -> Computed:
    """Return a constant for every record: zero times a piece of another blob, plus the constant."""
    if not step.is_batched(other.shape):
        return step.parameter(np.ascontiguousarray(array))
    lead = next(i for i, size in enumerate(other.shape) if size % step.batch == 0)
    rows = other.shape[lead]
    if lead != 0 or axis == 0 or array.shape[0] not in (1, rows):
        step.refuse("a constant of this shape cannot be joined to the records")
    one = array[:1]
    if not np.array_equal(np.broadcast_to(one, array.shape), array):
        step.refuse("a constant that differs from record to record cannot be joined to them")
    if step.reading.net.lengths and rows in step.reading.net.anchors:
        # A piece of the other blob may be shorter than that.
        return step.parameter(np.broadcast_to(one, (rows, *array.shape[1:])))
    x, part = other, f"constant_{place}"
    size, target = x.shape[axis], array.shape[axis]
    if target <= size:
        x = slice_axis(step, x, axis, 0, target, part=f"{part}_room")
    else:
        x = slice_axis(step, x, axis, 0, 1, part=f"{part}_one")
        x = step.layer("Tile", [x], part=f"{part}_room", axis=axis, tiles=target)
    zeros = step.layer("Power", [x], part=f"{part}_zeros", scale=0.0)
    block = np.ascontiguousarray(one[0], np.float32)
    return step.layer("Bias", [zeros], [block], part=part, axis=1, num_axes=-1)


@reads("Expand")
def expand(step: Step) -> Outputs:
    x = step.blob()
    target = step.sizes(1, "its shape")
    if fixed := step.reading.source.fixed:
        target = whole(x.shape, target, step.batch, fixed)
    return tiled(step, x, spread(x.shape, target))


def tiled(step: Step, x: Computed, shape: Shape, part: str = "spread") -> Computed:
    """Return a blob that is repeated along the axes where it has one value."""
    x = step.reshape(x, (1,) * (len(shape) - len(x.shape)) + x.shape, part="axes")
    if any(
        step.is_open(target) and size != target for size, target in zip(x.shape, shape, strict=True)
    ):
        return step.sized(x, shape, part=part)
    for axis, (size, target) in enumerate(zip(x.shape, shape, strict=True)):
        if size != target:
            x = step.layer("Tile", [x], part=f"{part}_{axis}", axis=axis, tiles=target)
    return x


@reads("Range")
def range_(step: Step) -> Outputs:
    """Places along an image of any size: as many as there are of a long list."""
    start, delta = (float(np.ravel(step.constant(place, "its bounds"))[0]) for place in (0, 2))
    (limit,) = step.sizes(1, "its bounds")
    if delta != 1 or start % 1:
        step.refuse("it counts the places of an image of any size by other steps than 1")
    places = np.arange(start, start + MOST_PIXELS, dtype=np.float32)
    long = step.layer("Parameter", [], [places], part="longest", shape={"dim": [MOST_PIXELS]})
    output = step.sized_by_inputs(long, (limit - int(start),), None)
    output.dtype = constant_type(np.asarray(step.inputs[1]))
    return output


@reads("ConstantOfShape")
def constant_of_shape(step: Step) -> Outputs:
    """Return one number over an image of any size."""
    value = np.ravel(step.attribute("value", np.zeros(1, np.float32)))[:1]
    shape = step.sizes(0, "its shape")
    output = step.layer("Parameter", [], [value], part="number", shape={"dim": [1]})
    output = step.sized_by_inputs(step.reshape(output, [1] * len(shape), "axes"), shape, None)
    output.dtype = value.dtype
    return output


@reads("Tile")
def tile(step: Step) -> Outputs:
    x = step.blob()
    repeats = step.sizes(1, "its repeats")
    if len(repeats) != len(x.shape) or min(repeats, default=0) < 1:
        step.refuse(f"repeats {repeats} for {len(x.shape)} axes")
    copied = [size for size, times in zip(x.shape, repeats, strict=True) if times > 1]
    if step.reading.source.fixed and step.is_batched(copied):
        step.refuse("it copies the records")
    for axis, times in enumerate(repeats):
        size = x.shape[axis]
        if step.is_open(times) and size != 1 and not step.is_open(size):
            one = step.reshape(x, _with_axis(x.shape, axis, 1), part=f"each_{axis}")
            wide = step.sized(one, _with_axis(x.shape, axis, times), part=f"rows_{axis}")
            shape = (*x.shape[:axis], times * size, *x.shape[axis + 1 :])
            x, repeats[axis] = step.reshape(wide, shape, part=f"repeated_{axis}"), 1
    each = [size == 1 and step.is_open(n) for size, n in zip(x.shape, repeats, strict=True)]
    whole = zip(x.shape, repeats, each, strict=True)
    x = step.sized(x, [times if is_open else size for size, times, is_open in whole], part="spread")
    for axis, times in enumerate(repeats):
        if times > 1 and not each[axis]:
            x = step.layer("Tile", [x], part=f"axis_{axis}", axis=axis, tiles=times)
    return x


def _with_axis(shape: Sequence[int], axis: int, times: int) -> Shape:
    """With an axis more, in front of this one."""
    return (*shape[:axis], times, *shape[axis:])


@reads("DepthToSpace", "SpaceToDepth")
def depth_and_space(step: Step) -> Outputs:
    x, size = step.blob(), int(step.attribute("blocksize", 0))
    if len(x.shape) != 4 or size < 1:
        step.refuse(f"a blocksize of {size} and {len(x.shape)} axes")
    n, c, h, w = x.shape
    if step.op == "SpaceToDepth":
        blocks = (n, c, h // size, size, w // size, size)
        first = step.attribute("mode", "DCR") == "DCR"
        order = (0, 3, 5, 1, 2, 4) if first else (0, 1, 3, 5, 2, 4)
        shape = (n, c * size * size, h // size, w // size)
    elif step.attribute("mode", "DCR") == "DCR":
        blocks = (n, size, size, c // size**2, h, w)
        order, shape = (0, 3, 4, 1, 5, 2), (n, c // size**2, h * size, w * size)
    else:
        blocks = (n, c // size**2, size, size, h, w)
        order, shape = (0, 1, 4, 2, 5, 3), (n, c // size**2, h * size, w * size)
    if prod(blocks) != prod(x.shape):
        step.refuse(f"{list(x.shape)} does not divide into blocks of {size}")
    cells = step.reshape(x, blocks, part="blocks")
    return step.reshape(step.layer("Permute", [cells], part="moved", order=list(order)), shape)
