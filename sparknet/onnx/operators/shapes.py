"""Operators that leave the values alone: other shapes, other types, nothing at all."""

from __future__ import annotations

from math import prod

import numpy as np

from sparknet.onnx.geometry import reshaped
from sparknet.onnx.netlist import Computed
from sparknet.onnx.reopening import view
from sparknet.onnx.step import Outputs, Step, reads


@reads("Identity", "StopGradient")
def same(step: Step) -> Outputs:
    return step.value(0)


@reads("Dropout")
def dropout(step: Step) -> Outputs:
    """A layer that drops in training, if the node says that it was exported for that."""
    if step.is_read(1):
        step.refuse("its mask is read, which no layer gives")
    ratio = step.attribute("ratio", 0.5)
    if step.opset >= 12:
        given, training = (step.optional(place, what) for place, what in _DROPOUT)
        if training is None or not np.any(training):
            return step.value(0)
        ratio = 0.5 if given is None else float(np.ravel(given)[0])
        if ratio:
            step.reading.dropping.append(step.node.name)
    if not 0 <= ratio < 1:
        step.refuse(f"its ratio is {ratio:g}")
    return step.pointwise("Dropout", dropout_ratio=ratio) if ratio else step.value(0)


_DROPOUT = ((1, "the ratio"), (2, "whether it is in training"))


@reads("Reshape")
def reshape(step: Step) -> Outputs:
    wanted = step.attribute("shape")
    if wanted is None:
        wanted = np.ravel(step.constant(1, "the new shape")).tolist()
    shape, keep_zero = step.shape(0), bool(step.attribute("allowzero"))
    fixed = step.reading.source.fixed
    if fixed:
        return _view(step, view(shape, wanted, keep_zero, step.batch, fixed))
    return _view(step, reshaped(shape, wanted, keep_zero))


@reads("Flatten")
def flatten(step: Step) -> Outputs:
    shape = step.shape(0)
    axis = int(step.attribute("axis", 1))
    axis = axis if axis == len(shape) else step.axis(axis, len(shape))
    return _view(step, (prod(shape[:axis]), prod(shape[axis:])))


@reads("Squeeze")
def squeeze(step: Step) -> Outputs:
    shape, axes = step.shape(0), _axes(step)
    gone = {axis for axis, size in enumerate(shape) if size == 1}
    if axes is not None:
        gone = {step.axis(axis, len(shape)) for axis in axes}
        if any(shape[axis] != 1 for axis in gone):
            step.refuse(f"axes {sorted(gone)} of {list(shape)} are not all of size 1")
    return _view(step, [size for axis, size in enumerate(shape) if axis not in gone])


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
    given = step.optional(1, "its axes")
    return None if given is None else [int(axis) for axis in np.ravel(given)]


def _view(step: Step, shape: tuple[int, ...] | list[int]) -> Computed:
    return step.reshape(step.blob(), shape)
