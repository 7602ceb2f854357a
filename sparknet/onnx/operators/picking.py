"""The largest and smallest values of an axis, and their places."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.netlist import Computed
from sparknet.onnx.operators.arithmetic import combine
from sparknet.onnx.operators.cutting import taken
from sparknet.onnx.step import Outputs, Step, reads

PLACES = np.dtype(np.int64)


@reads("ArgMax", "ArgMin")
def extreme(step: Step) -> Outputs:
    x = step.blob()
    axis = _axis(step, x, 0)
    if step.op == "ArgMin":
        x = step.pointwise("Power", of=x, part="negative", scale=-1.0)
    keep = bool(step.attribute("keepdims", 1))
    part = None if keep else "places"
    made = _places(step, x, axis, 1, bool(step.attribute("select_last_index")), part)
    if not keep:
        made = step.reshape(made, (*x.shape[:axis], *x.shape[axis + 1 :]))
    made.dtype = PLACES
    return made


@reads("TopK")
def top_k(step: Step) -> Outputs:
    x = step.blob()
    axis = _axis(step, x, -1)
    given = step.attribute("k")
    most = int(np.ravel(step.constant(1, "how many"))[0]) if given is None else int(given)
    largest = bool(step.attribute("largest", 1))
    if not 1 <= most <= x.shape[axis]:
        step.refuse(f"it takes {most} of {x.shape[axis]} values")
    if not largest:
        x = step.pointwise("Power", of=x, part="negative", scale=-1.0)
    values: Computed | None = None
    if step.is_read(0):
        part = None if largest else "negative_values"
        values = step.layer("ArgMax", [x], part=part, axis=axis, top_k=most, out_max_val=True)
        if not largest:
            values = step.pointwise("Power", of=values, scale=-1.0)
    places = _places(step, x, axis, most, False, "places") if step.is_read(1) else None
    return [np.zeros(0, np.float32) if one is None else one for one in (values, places)]


def _axis(step: Step, x: Computed, otherwise: int) -> int:
    axis = step.axis(int(step.attribute("axis", otherwise)), len(x.shape))
    if x.shape[axis] % step.batch == 0:
        step.refuse("it compares the records")
    return axis


def _places(
    step: Step, x: Computed, axis: int, most: int, last: bool, part: str | None
) -> Computed:
    """Of equal values the layer takes the last; for the first it reads the values backwards."""
    size = x.shape[axis]
    if not last and most == 1 and step.is_open(size):
        return _first_place(step, x, axis, part)
    if not last:
        x = taken(step, x, axis, range(size)[::-1], part="backwards")
    label = part if last else "from_the_end"
    made = step.layer("ArgMax", [x], part=label, axis=axis, top_k=most)
    if not last:
        made = step.layer("Power", [made], part=part, scale=-1.0, shift=size - 1.0)
    made.dtype = PLACES
    return made


def first_places(step: Step, x: Computed, axis: int, part: str) -> Computed:
    """The place of the largest value, the first of equal ones."""
    return _places(step, x, axis, 1, False, part)


def _first_place(step: Step, x: Computed, axis: int, part: str | None) -> Computed:
    """Of an axis of any size: how many values lie before the first that no other is above."""
    most = step.layer("ArgMax", [x], part="most", axis=axis, out_max_val=True)
    distance = combine(step, "Sub", most, x, part="distance")
    below = step.pointwise("Threshold", of=distance, part="below", threshold=0.0)
    reached = step.pointwise("Power", of=below, part="reached", scale=-1.0, shift=1.0)
    total = step.layer("CumSum", [reached], part="total", axis=axis)
    before = step.layer("Clip", [total], part="after", min=0.0, max=1.0)
    before = step.layer("Power", [before], part="before", scale=-1.0, shift=1.0)
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    if axis != len(x.shape) - 1:
        order = [one for one in range(len(x.shape)) if one != axis] + [axis]
        before = step.permuted(before, order)
    count = step.layer("Reduction", [before], part="count", axis=len(x.shape) - 1)
    made = step.reshape(count, shape, part=part)
    made.dtype = PLACES
    return made
