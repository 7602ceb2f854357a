"""Normalisation: by given statistics, over channels, over groups and over the last axes."""

from __future__ import annotations

from math import prod

import numpy as np

from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.binary import combine
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_MOST_COUNTED = float(2**24)
"""Batches; where nothing is ever forgotten, one more no longer changes the mean in float32."""


@reads("BatchNormalization")
def batch_norm(step: Step) -> Outputs:
    """Set Caffe's count to its limit, 1 / (1 - f), so that f is ONNX's momentum."""
    if step.attribute("training_mode") or len([one for one in step.node.outputs if one]) > 1:
        step.refuse("it is exported for training")
    names = ("the scale", "the bias", "the mean", "the variance")
    scale, bias, mean, variance = (step.constant(i, name) for i, name in enumerate(names, 1))
    x = step.blob()
    eps, momentum = float(step.attribute("epsilon", 1e-5)), float(step.attribute("momentum", 0.9))
    if not 0 <= momentum <= 1:
        step.refuse(f"its momentum is {momentum:g}")
    count = np.float32(min(_MOST_COUNTED, 1 / max(1 - momentum, 1 / _MOST_COUNTED)))
    output = step.layer(
        "BatchNorm",
        [x],
        [mean * count, variance * count, count.reshape(1)],
        part="normalised",
        label="",
        eps=eps,
        moving_average_fraction=momentum,
    )
    if step.reading.source.is_ours and (scale == 1).all() and not bias.any():
        return output  # Caffe's BatchNorm has no factors; those of its Scale follow.
    return step.layer("Scale", [output], [scale, bias], label="scale", bias_term=True)


@reads("LRN")
def lrn(step: Step) -> Outputs:
    return step.layer(
        "LRN",
        [step.blob()],
        local_size=int(step.attribute("size", 0)),
        alpha=float(step.attribute("alpha", 1e-4)),
        beta=float(step.attribute("beta", 0.75)),
        k=float(step.attribute("bias", 1.0)),
    )


@reads("LayerNormalization")
def layer_norm(step: Step) -> Outputs:
    if len([name for name in step.node.outputs if name]) > 1:
        step.refuse("its mean or deviation is read, which the layer does not give")
    x = step.blob()
    axes = step.attribute("axes")
    first = step.attribute("axis", -1) if axes is None else min(int(a) % len(x.shape) for a in axes)
    axis = step.axis(int(first), len(x.shape))
    if axes is not None and sorted(int(a) % len(x.shape) for a in axes) != list(
        range(axis, len(x.shape))
    ):
        return _moved(step, x, [int(a) % len(x.shape) for a in axes])
    scale, bias = step.optional(1, "the scale"), step.optional(2, "the bias")
    eps = float(step.attribute("epsilon", 1e-5))
    output = _normalised(step, x, axis, eps, scale is None and bias is None)
    whole = x.shape[axis:]
    if all(one is None or one.shape == whole for one in (scale, bias)):
        return scaled(step, output, axis, scale, bias)
    spread: Value = output
    if scale is not None:
        spread = combine(step, "Mul", spread, scale, None if bias is None else "scaled")
    return spread if bias is None else combine(step, "Add", spread, bias)


def _moved(step: Step, x: Computed, axes: list[int]) -> Computed:
    """Over axes that are not the last ones."""
    order = [axis for axis in range(len(x.shape)) if axis not in axes] + sorted(axes)
    moved = step.layer("Permute", [x], part="moved", order=order)
    first = len(x.shape) - len(axes)
    output = _normalised(step, moved, first, float(step.attribute("epsilon", 1e-5)), False)
    back = tuple(order.index(axis) for axis in range(len(order)))
    return Computed(output.name, output.stored, back)


def _normalised(step: Step, x: Computed, axis: int, eps: float, last: bool) -> Computed:
    return step.layer("LayerNorm", [x], part=None if last else "normalised", axis=axis, eps=eps)


def scaled(step: Step, x: Computed, axis: int, scale: Array | None, bias: Array | None) -> Computed:
    """Factors and shifts that lie along an axis."""
    if scale is None:
        return x
    arrays = [scale] if bias is None else [scale, bias]
    return step.layer(
        "Scale", [x], arrays, axis=axis, num_axes=scale.ndim, bias_term=bias is not None
    )


@reads("RMSNormalization")
def rms_norm(step: Step) -> Outputs:
    """x over the root of its mean of squares."""
    x, scale = step.blob(), step.constant(1, "the scale")
    axis = step.axis(int(step.attribute("axis", -1)), len(x.shape))
    eps = float(step.attribute("epsilon", 1e-5))
    squares = step.layer("Power", [x], part="squares", power=2.0)
    mean = step.layer("Reduction", [squares], part="mean", operation="MEAN", axis=axis)
    root = step.layer("Power", [mean], part="root", shift=eps, power=-0.5)
    output = step.layer("Scale", [x, root], part="normalised", axis=0)
    return scaled(step, output, axis, np.broadcast_to(scale, x.shape[axis:]), None)


@reads("InstanceNormalization")
def instance_norm(step: Step) -> Outputs:
    x = step.blob()
    scale, bias = step.constant(1, "the scale"), step.constant(2, "the bias")
    output = _normalised(step, x, 2, float(step.attribute("epsilon", 1e-5)), False)
    return scaled(step, output, 1, scale, bias)


@reads("GroupNormalization")
def group_norm(step: Step) -> Outputs:
    x, groups = step.blob(), int(step.attribute("num_groups", 0))
    if groups < 1 or x.shape[1] % groups:
        step.refuse(f"{groups} groups of {x.shape[1]} channels")
    scale, bias = step.constant(1, "the scale"), step.constant(2, "the bias")
    if scale.size == groups != x.shape[1]:
        times = x.shape[1] // groups
        scale, bias = np.repeat(scale, times), np.repeat(bias, times)
    rows = step.reshape(x, (x.shape[0], groups, prod(x.shape[1:]) // groups), part="groups")
    output = _normalised(step, rows, 2, float(step.attribute("epsilon", 1e-5)), False)
    return scaled(step, step.reshape(output, x.shape, part="channels"), 1, scale, bias)
