"""Gather and ScatterND in all their forms: values read or written by index."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.shapes import joined, permute
from sparknet.onnx.operators.slicing import from_start, gather_places, slice_axis
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_MOST_WINDOWS = 64


@reads("Gather")
def gather(step: Step) -> Outputs:
    data, places = step.value(0), step.value(1, rounded=True, rows=True)
    if isinstance(places, Computed) and places.rows:
        return _one_of_each(step, step.plain(data), places)
    if isinstance(places, Computed):
        return _embedded(step, data, places)
    x = step.blob()
    axis = step.axis(int(step.attribute("axis", 0)), len(x.shape))
    if step.is_batched([x.shape[axis]]):
        return _of_rows(step, x, axis, places) or _gather_of_each(step, x, places)
    step.check_numbers(1)
    if any(map(step.is_open, places.shape)) and not step.reading.folds.counts(step.node.inputs[1]):
        step.refuse("it picks values by a list that is as long as the input")
    shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    if places.ndim == 2 and sum(map(step.is_open, places.shape)) == 1:
        windows = _windows(step, x, axis, places)
        if windows is not None:
            return windows
    part = None if places.ndim == 1 else "taken"
    return step.reshape(gather_places(step, x, axis, np.ravel(places).tolist(), part), shape)


def _windows(step: Step, x: Computed, axis: int, places: Array) -> Computed | None:
    """Pieces that are as long as the input and begin at several places (PyTorch's unfold)."""
    last = step.is_open(places.shape[1])
    rows = places if last else places.T
    counted = rows[:, :1] + np.arange(rows.shape[1])
    if len(rows) > _MOST_WINDOWS or rows.min() < 0 or np.any(rows != counted):
        return None
    before, after, each = x.shape[:axis], x.shape[axis + 1 :], (1, rows.shape[1])
    pieces = []
    for at, row in enumerate(rows):
        piece = gather_places(step, x, axis, row.tolist(), part=f"window_{at}")
        shape = (*before, *(each if last else each[::-1]), *after)
        pieces.append(step.reshape(piece, shape, part=f"windows_{at}"))
    return step.layer("Concat", pieces, axis=axis if last else axis + 1)


def _one_of_each(step: Step, x: Computed, places: Computed) -> Computed:
    """Return a row of each record, where the records' rows were made one axis before."""
    maker = step.reading.net.makers.get(x.name)
    source = x
    if places.rows > 0 and maker is not None and maker.type in ("Flatten", "Reshape"):
        source = step.reading.net.blobs[maker.parameter.bottom[0]]
    if source.shape[:2] != (step.batch, places.rows) and places.rows > 0:
        step.refuse("it takes some of the records, which no layer does")
    numbers = Computed(places.name, places.stored, places.order)
    numbers = step.reshape(numbers, (step.batch,), part="places")
    picked = step.layer("BatchGather", [source, numbers], axis=1)
    shape = x.shape[1:] if places.rows > 0 else x.shape[2:]
    return step.reshape(picked, (step.batch, *shape), part="taken")


def _of_rows(step: Step, x: Computed, axis: int, places: Array) -> Computed | None:
    """Return all of a blob whose first axes were joined before (PyTorch's masks)."""
    maker = step.reading.net.makers.get(x.name)
    if axis or maker is None or maker.type not in ("Flatten", "Reshape") or not places.size:
        return None
    source = step.reading.net.blobs[maker.parameter.bottom[0]]
    leads = [source.shape[:end] for end in range(1, len(source.shape) + 1)]
    lead = next((one for one in leads if prod(one) == x.shape[0]), None)
    if lead is None or places.min() < 0 or places.max() >= x.shape[0]:
        return None
    rows = _rearranged(step, source, np.unravel_index(places.astype(np.int64), lead))
    return None if rows is None else step.reshape(rows, (*places.shape, *x.shape[1:]), "taken")


def _rearranged(step: Step, x: Computed, columns: Sequence[Array]) -> Computed | None:
    """x[columns], if each column counts through its axis of x along an axis of its own."""
    whole, own = columns[0].shape, list[int]()
    for size, column in zip(x.shape, columns, strict=False):
        fitting = [axis for axis in range(len(whole)) if _counts(column, axis, size)]
        if not fitting or (own and fitting[0] <= own[-1]):
            return None
        own.append(fitting[0])
    rest = x.shape[len(columns) :]
    shape = [size if axis in own else 1 for axis, size in enumerate(whole)]
    return step.sized(step.reshape(x, (*shape, *rest), part="axes"), (*whole, *rest))


def _counts(column: Array, axis: int, size: int) -> bool:
    if column.shape[axis] != size:
        return False
    shape = [size if one == axis else 1 for one in range(column.ndim)]
    return bool(np.all(column == np.arange(int(size)).reshape(shape)))


def _gather_of_each(step: Step, x: Computed, places: Array) -> Computed:
    """Return the same places of every record (PyTorch's as_strided)."""
    step_ = x.shape[0] // step.batch
    rows = places.reshape(step.batch, -1) if places.size % step.batch == 0 else places[None]
    own = rows - step_ * np.arange(len(rows))[:, None]
    inside = own.size and own.min() >= 0 and own.max() < step_
    if len(x.shape) != 1 or len(rows) != step.batch or not inside or np.any(own != own[0]):
        step.refuse("it takes some of the records, which no layer does")
    records = step.reshape(x, (step.batch, step_), part="records")
    return step.reshape(gather_places(step, records, 1, own[0].tolist(), "taken"), places.shape)


def _embedded(step: Step, data: Value, places: Computed) -> Value:
    """Rows of a constant table, or items of a blob."""
    axis = int(step.attribute("axis", 0))
    if isinstance(data, Computed) and axis == 0 and len(places.shape) == 1:
        numbers = Computed(places.name, places.stored) if places.rounded else step.plain(places)
        return step.layer("BatchReindex", [step.plain(data), numbers])
    if isinstance(data, Computed) or data.ndim < 1:
        step.refuse("it picks values that the model computes by indices that it computes")
    axis = step.axis(axis, data.ndim)
    data = np.moveaxis(data, axis, 0)
    table = np.ascontiguousarray(data).reshape(data.shape[0], -1)
    wide = data.ndim != 2
    numbers = Computed(places.name, places.stored) if places.rounded else step.plain(places)
    rows = _rows_of_table(step, numbers, table, "rows" if wide else None)
    rows = step.reshape(rows, (*places.shape, *data.shape[1:])) if wide else rows
    if not axis:
        return rows
    count = len(places.shape)
    rest = range(count, len(rows.shape))
    return permute(rows, [*rest[:axis], *range(count), *rest[axis:]])


def _rows_of_table(step: Step, places: Computed, table: Array, part: str | None) -> Computed:
    return step.layer(
        "Embed",
        [places],
        [table.astype(np.float32)],
        part=part,
        num_output=table.shape[1],
        input_dim=table.shape[0],
        bias_term=False,
    )


@reads("GatherND")
def gather_nd(step: Step) -> Outputs:
    """Places of the first axes, which are taken as one."""
    indices = step.value(1, rows=True)
    if isinstance(indices, Computed) and indices.rows == -1:
        return _one_of_each(step, step.blob(), indices)
    if isinstance(indices, Computed):
        step.refuse("the indices must be constant; here the model computes it")
    places = indices.astype(np.int64)
    x, count = step.blob(), places.shape[-1] if places.ndim else 0
    lead = x.shape[:count]
    if places.size and not step.attribute("batch_dims") and 0 < count <= len(x.shape):
        picked = _rearranged(step, x, list(np.moveaxis(places, -1, 0)))
        if picked is not None:
            return picked
    step.check_numbers(1)
    if step.attribute("batch_dims") or not 0 < count <= len(x.shape) or step.is_batched(lead):
        step.refuse("it picks places by record, which no layer does")
    sizes, columns = np.asarray(lead), places.reshape(-1, count)
    if np.any(columns < -sizes) or np.any(columns >= sizes):
        step.refuse(f"a place is out of range for {list(lead)}")
    flat = np.ravel_multi_index(tuple((columns % sizes).T), lead)
    rows = step.reshape(x, (prod(lead), *x.shape[count:]), part="rows")
    parts = gather_places(step, rows, 0, flat.tolist(), part="taken")
    return step.reshape(parts, (*places.shape[:-1], *x.shape[count:]))


@reads("GatherElements")
def gather_elements(step: Step) -> Outputs:
    """Places along the last axis, for each row; the other axes must be whole."""
    data, places = step.value(0), step.blob(1)
    axis = step.axis(int(step.attribute("axis", 0)), len(data.shape))
    if not isinstance(data, Computed):
        table = step.unbatched(data)
        if table.size == table.shape[axis]:  # one row for all
            picked = _rows_of_table(step, places, table.reshape(-1, 1), "rows")
            return step.reshape(picked, places.shape)
        data = step.parameter(data)
    x = step.plain(data)
    order = [one for one in range(len(x.shape)) if one != axis] + [axis]
    rest = [size for place, size in enumerate(x.shape) if place != axis]
    if (
        len(places.shape) != len(x.shape)
        or [size for place, size in enumerate(places.shape) if place != axis] != rest
    ):
        step.refuse(f"places {list(places.shape)} are not for the whole of {list(x.shape)}")
    if step.is_batched([x.shape[axis]]):
        step.refuse("it takes some of the records, which no layer does")
    moved = [step.plain(permute(one, order)) for one in (x, places)]
    picked = step.layer("BatchGather", moved, axis=len(order) - 1)
    back = [int(one) for one in np.argsort(order)]
    return permute(picked, back)


@reads("ScatterND")
def scatter_nd(step: Step) -> Outputs:
    """Pieces before and behind the block, and the block between them, axis by axis."""
    data, updates = step.value(0), step.value(2)
    places = step.constant(1, "the places").astype(np.int64)
    if step.attribute("reduction", "none") != "none":
        step.refuse("it adds up what falls on one place")
    block = _block(places, data.shape)
    if block is None:
        step.refuse("the places are no block, one value beside the other")
    shape = (*places.shape[:-1], *data.shape[len(block) :])
    if updates.shape != shape:
        step.refuse(f"the values {list(updates.shape)} are not for the places {list(shape)}")
    return _put(step, data, updates, block)


def _block(places: Array, shape: Sequence[int]) -> list[range] | None:
    """Return what the places take of each axis: each column counts along an axis of its own."""
    whole = places.shape[:-1]
    if not places.size or len(whole) != places.shape[-1] or len(whole) > len(shape):
        return None
    ranges: list[range] = []
    for axis, (count, size) in enumerate(zip(whole, shape, strict=False)):
        column = places[..., axis]
        first = int(column.flat[0])
        lined = [count if one == axis else 1 for one in range(len(whole))]
        if np.any(column != np.arange(first, first + count).reshape(lined)):
            return None
        first += size if first < 0 else 0
        if not 0 <= first <= first + count <= size:
            return None
        ranges.append(range(first, first + count))
    return ranges


def _put(
    step: Step, data: Value, updates: Value, block: Sequence[range], part: str | None = None
) -> Value:
    apart = [axis for axis, one in enumerate(block) if one != range(data.shape[axis])]
    if not apart:
        return updates
    axis, places = apart[0], block[apart[0]]
    if step.is_batched([data.shape[axis]]):
        step.refuse("it changes some of the records, which no layer does")
    if len(apart) > 1:
        rest = [range(len(places)) if one == axis else its for one, its in enumerate(block)]
        middle = _piece(step, data, axis, places, "block")
        updates = _put(step, middle, updates, rest, f"block_along_{apart[1]}")
    pieces = [updates]
    if places.start:
        pieces.insert(0, _piece(step, data, axis, range(places.start), "before"))
    if places.stop < data.shape[axis]:
        behind = range(places.stop, data.shape[axis])
        pieces.append(_piece(step, data, axis, behind, "behind"))
    return joined(step, pieces, axis, part)


def _piece(step: Step, data: Value, axis: int, places: range, part: str) -> Value:
    if not isinstance(data, Computed):
        return np.take(data, places, axis)
    x = step.plain(data)
    if places.stop == x.shape[axis] and step.is_open(places.stop):
        return from_start(step, x, axis, places.start)
    return slice_axis(step, x, axis, places.start, places.stop, part=f"{part}_{axis}")
