"""A block of values that is put into others: an assignment to a piece of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.cutting import begun, cut
from sparknet.onnx.operators.moving import joined
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads


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
    """What the places take of each axis: each column counts along an axis of its own."""
    whole = places.shape[:-1]
    if not places.size or len(whole) != places.shape[-1] or len(whole) > len(shape):
        return None
    found: list[range] = []
    for axis, (count, size) in enumerate(zip(whole, shape, strict=False)):
        column = places[..., axis]
        first = int(column.flat[0])
        lined = [count if one == axis else 1 for one in range(len(whole))]
        if np.any(column != np.arange(first, first + count).reshape(lined)):
            return None
        first += size if first < 0 else 0
        if not 0 <= first <= first + count <= size:
            return None
        found.append(range(first, first + count))
    return found


def _put(
    step: Step, data: Value, updates: Value, block: Sequence[range], part: str | None = None
) -> Value:
    apart = [axis for axis, one in enumerate(block) if one != range(data.shape[axis])]
    if not apart:
        return updates
    axis, taken = apart[0], block[apart[0]]
    if step.is_batched([data.shape[axis]]):
        step.refuse("it changes some of the records, which no layer does")
    if len(apart) > 1:
        rest = [range(len(taken)) if one == axis else its for one, its in enumerate(block)]
        middle = _piece(step, data, axis, taken, "block")
        updates = _put(step, middle, updates, rest, f"block_along_{apart[1]}")
    pieces = [updates]
    if taken.start:
        pieces.insert(0, _piece(step, data, axis, range(taken.start), "before"))
    if taken.stop < data.shape[axis]:
        behind = range(taken.stop, data.shape[axis])
        pieces.append(_piece(step, data, axis, behind, "behind"))
    return joined(step, pieces, axis, part)


def _piece(step: Step, data: Value, axis: int, places: range, part: str) -> Value:
    if not isinstance(data, Computed):
        return np.take(data, places, axis)
    x = step.plain(data)
    if places.stop == x.shape[axis] and step.is_open(places.stop):
        return begun(step, x, axis, places.start)
    return cut(step, x, axis, places.start, places.stop, part=f"{part}_{axis}")
