"""Operators that leave the values alone: other shapes, other types, nothing at all."""

from __future__ import annotations

from math import prod

import numpy as np

from sparknet.onnx.folding import reshaped
from sparknet.onnx.netlist import Blob
from sparknet.onnx.step import Outputs, Step, reads


@reads("Identity", "Dropout", "StopGradient")
def same(step: Step) -> Outputs:
    if len(step.node.outputs) > 1 and step.node.outputs[1]:
        step.refuse("its mask is read, which exists only in training")
    return step.value(0)


@reads("Reshape")
def reshape(step: Step) -> Outputs:
    wanted = step.attribute("shape")
    if wanted is None:
        wanted = np.ravel(step.constant(1, "the new shape")).tolist()
    shape = step.shape(0)
    return _view(step, reshaped(shape, wanted, bool(step.attribute("allowzero"))))


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


def _view(step: Step, shape: tuple[int, ...] | list[int]) -> Blob:
    value = step.value(0)
    assert isinstance(value, Blob)
    made = step.reshape(value, shape)
    made.integral = value.integral
    return made
