"""Reductions over axes: sums, means, extremes, ArgMax and TopK."""

from __future__ import annotations

from math import prod

import numpy as np

from sparknet.onnx.geometry import axes_of
from sparknet.onnx.netlist import LARGEST, TINY, Computed
from sparknet.onnx.operators.binary import combine
from sparknet.onnx.operators.pooling import over_all
from sparknet.onnx.operators.slicing import gather_places
from sparknet.onnx.step import Outputs, Step, reads

_SUMS = {
    "ReduceL1": "ASUM",
    "ReduceL2": "SUMSQ",
    "ReduceMean": "MEAN",
    "ReduceSum": "SUM",
    "ReduceSumSquare": "SUMSQ",
    "ReduceLogSum": "SUM",
}


@reads(*_SUMS, "ReduceLogSumExp", "ReduceMax", "ReduceMin")
def reduce(step: Step) -> Outputs:
    value = step.value(0)
    count = len(value.shape)
    inputs = [None, step.optional(1, "its axes")]
    listed = axes_of(step.node, inputs)
    if not listed and step.attribute("noop_with_empty_axes"):
        if step.op not in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"):
            step.refuse("it reduces nothing, which is not the same everywhere")
        return value
    axes = sorted(step.axis(axis, count) for axis in listed or range(count))
    if any(step.is_batched([value.shape[axis]]) and value.shape[axis] for axis in axes):
        step.refuse("it reduces over the records, of which there may be any number")
    keep = bool(step.attribute("keepdims", 1))
    shape = [
        1 if axis in axes else size
        for axis, size in enumerate(value.shape)
        if keep or axis not in axes
    ]
    x = step.plain(value)
    extreme = step.op in ("ReduceMax", "ReduceMin")
    if axes == [2, 3] and count == 4 and (extreme or step.op == "ReduceMean"):
        whole = keep and step.op != "ReduceMin"
        method = "AVE" if step.op == "ReduceMean" else "MAX"
        x = (
            step.pointwise("Power", of=x, part="negative", scale=-1.0)
            if step.op == "ReduceMin"
            else x
        )
        if whole:
            return step.layer("Pooling", [x], pool=method, global_pooling=True)
        output = over_all(step, x, method)
    else:
        output = _over(step, x, axes)
    return _finished(step, output, shape)


def _over(step: Step, x: Computed, axes: list[int]) -> Computed:
    count = len(x.shape)
    order = [axis for axis in range(count) if axis not in axes] + axes
    if order != list(range(count)):
        x = step.permuted(x, order)
    first = count - len(axes)
    if step.op in _SUMS:
        return step.layer("Reduction", [x], part="reduced", operation=_SUMS[step.op], axis=first)
    if step.op == "ReduceMin":
        x = step.pointwise("Power", of=x, part="negative", scale=-1.0)
    width = prod(x.shape[first:])
    rows = step.reshape(x, (prod(x.shape[:first]), 1, 1, width), part="rows")
    most = over_all(step, rows, "MAX")
    if step.op != "ReduceLogSumExp":
        return most
    # The largest value is as far below the result as the logarithm of its share is below 0.
    shares = step.layer("LogSoftmax", [rows], part="shares", axis=3)
    share = over_all(step, shares, "MAX", "share")
    return step.layer("Eltwise", [most, share], part="summed", coeff=[1.0, -1.0])


def _finished(step: Step, x: Computed, shape: list[int]) -> Computed:
    if step.op == "ReduceMin":
        x = step.layer("Power", [x], part="positive", scale=-1.0)
    elif step.op == "ReduceL2":
        x = step.layer("Power", [x], part="root", power=0.5)
    elif step.op == "ReduceLogSum":
        x = step.layer("Log", [x], part="log")
    return step.reshape(x, shape)


@reads("CumSum")
def cumulative(step: Step) -> Outputs:
    x = step.blob()
    axis = step.axis(int(np.ravel(step.constant(1, "its axis"))[0]), len(x.shape))
    if step.is_batched([x.shape[axis]]):
        step.refuse("it sums over the records, of which there may be any number")
    exclusive, reverse = (bool(step.attribute(name)) for name in ("exclusive", "reverse"))
    return step.layer("CumSum", [x], axis=axis, exclusive=exclusive, reverse=reverse)


@reads("LpNormalization")
def lp_normalization(step: Step) -> Outputs:
    """x over the root of its sum of squares, or over its sum of magnitudes."""
    x = step.blob()
    axis = step.axis(int(step.attribute("axis", -1)), len(x.shape))
    if step.is_batched([x.shape[axis]]):
        step.refuse("it sums over the records, of which there may be any number")
    squares = int(step.attribute("p", 2)) == 2
    order = [one for one in range(len(x.shape)) if one != axis] + [axis]
    moved = x if axis == len(x.shape) - 1 else step.permuted(x, order)
    kind = "SUMSQ" if squares else "ASUM"
    total = step.layer("Reduction", [moved], part="total", operation=kind, axis=len(order) - 1)
    least = step.layer("Clip", [total], part="least", min=TINY, max=LARGEST)  # 0 stays 0
    if step.node.outputs[0] in step.reading.exact:
        size = step.layer("Power", [least], part="size", power=0.5) if squares else least
        size = step.reshape(size, (*moved.shape[:-1], 1), part="sizes")
        output = step.layer("Div", [moved, size], part="scaled")
    else:
        factor = step.layer("Power", [least], part="factor", power=-0.5 if squares else -1.0)
        output = step.layer("Scale", [moved, factor], part="scaled", axis=0)
    back = tuple(int(one) for one in np.argsort(order))
    return output if moved is x else Computed(output.name, output.stored, back)


PLACES = np.dtype(np.int64)


@reads("ArgMax", "ArgMin")
def extreme(step: Step) -> Outputs:
    x = step.blob()
    axis = _axis(step, x, 0)
    if step.op == "ArgMin":
        x = step.pointwise("Power", of=x, part="negative", scale=-1.0)
    keep = bool(step.attribute("keepdims", 1))
    part = None if keep else "places"
    places = _places(step, x, axis, 1, bool(step.attribute("select_last_index")), part)
    if not keep:
        places = step.reshape(places, (*x.shape[:axis], *x.shape[axis + 1 :]))
    places.dtype = PLACES
    return places


@reads("TopK")
def top_k(step: Step) -> Outputs:
    x = step.blob()
    axis = _axis(step, x, -1)
    attribute = step.attribute("k")
    most = int(np.ravel(step.constant(1, "how many"))[0]) if attribute is None else int(attribute)
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
    if step.is_batched([x.shape[axis]]):
        step.refuse("it compares the records")
    return axis


def _places(
    step: Step, x: Computed, axis: int, most: int, last: bool, part: str | None
) -> Computed:
    """Take the last of equal values, or for the first read the values backwards."""
    size = x.shape[axis]
    if not last and most == 1 and step.is_open(size):
        return _first_place(step, x, axis, part)
    if not last:
        x = gather_places(step, x, axis, range(size)[::-1], part="backwards")
    label = part if last else "from_the_end"
    output = step.layer("ArgMax", [x], part=label, axis=axis, top_k=most)
    if not last:
        output = step.layer("Power", [output], part=part, scale=-1.0, shift=size - 1.0)
    output.dtype = PLACES
    return output


def first_places(step: Step, x: Computed, axis: int, part: str) -> Computed:
    """Return the place of the largest value, the first of equal ones."""
    return _places(step, x, axis, 1, False, part)


def _first_place(step: Step, x: Computed, axis: int, part: str | None) -> Computed:
    """Return the index of the first maximum along an axis of unknown size."""
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
    place = step.reshape(count, shape, part=part)
    place.dtype = PLACES
    return place
