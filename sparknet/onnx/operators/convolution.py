"""Convolutions and their padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from sparknet.onnx.geometry import even_window
from sparknet.onnx.limits import bounded
from sparknet.onnx.netlist import Computed
from sparknet.onnx.sizes import Size
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_MOST = 1 << 20
"""A kernel, a stride or a pad."""


@dataclass
class NodeWindow:
    """Kernel, stride, dilation and padding of a node, one entry for each spatial axis."""

    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    before: list[int]
    after: list[int]

    @property
    def lists(self) -> list[list[int]]:
        return [self.kernel, self.stride, self.dilation, self.before, self.after]

    def some(self, *axes: int) -> NodeWindow:
        """Return the same along these axes alone."""
        return NodeWindow(*([one[axis] for axis in axes] for one in self.lists))

    @property
    def extent(self) -> list[int]:
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]


def window_of(step: Step, kernel: Sequence[int], sizes: Sequence[int]) -> NodeWindow:
    """Reads the attributes that convolution and pooling share."""
    axes = len(sizes)
    counts = step.attribute("ceil_mode") or str(step.attribute("auto_pad")).startswith("SAME")
    if counts and step.is_batched(step.shape(0)[2:]):
        step.refuse("its windows reach over the records, of which there may be any number")
    if len(kernel) != axes or min(kernel, default=0) < 1 or max(kernel) > _MOST:
        step.refuse(f"a kernel of the shape {list(kernel)} for {axes} spatial axes")

    def each(name: str, otherwise: int, least: int) -> list[int]:
        values = [int(one) for one in step.attribute(name) or [otherwise] * axes]
        if len(values) != axes or not all(least <= one <= _MOST for one in values):
            step.refuse(f"{name} {values} for {axes} spatial axes")
        return values

    stride, dilation = each("strides", 1, 1), each("dilations", 1, 1)
    pads = [int(one) for one in step.attribute("pads") or [0] * (2 * axes)]
    if len(pads) != 2 * axes or not all(0 <= pad <= _MOST for pad in pads):
        step.refuse(f"pads {pads} for {axes} spatial axes")
    window = NodeWindow(list(kernel), stride, dilation, pads[:axes], pads[axes:])
    mode = step.attribute("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        for axis, (size, extent) in enumerate(zip(sizes, window.extent, strict=True)):
            outputs = -(-size // stride[axis])
            missing = (outputs - 1) * stride[axis] + extent - size
            if isinstance(missing, Size) and (step.op, mode, extent) == (
                "MaxPool",
                "SAME_UPPER",
                2,
            ):
                window.after[axis] = missing  # 0 or 1
                continue
            if isinstance(missing, Size):
                step.refuse(f"its auto_pad with a stride of {stride} depends on the image's size")
            if missing < -1 and step.op == "AveragePool" and mode == "SAME_UPPER":
                step.refuse(f"its auto_pad with a stride of {stride} is not the same everywhere")
            missing = max(0, missing)
            small, large = missing // 2, missing - missing // 2
            lower = mode == "SAME_LOWER"
            window.before[axis], window.after[axis] = (large, small) if lower else (small, large)
    elif mode not in ("NOTSET", "VALID"):
        step.refuse(f"its auto_pad is '{mode}'")
    return window


def _padded_input(step: Step) -> tuple[Computed, list[int], list[int]]:
    """Return the image, and zeros that lie around it already."""
    value = step.value(0)
    if not isinstance(value, Computed):
        value = step.plain(value)
    if len(value.shape) < 3:
        step.refuse(f"takes channels and at least one spatial axis; {list(value.shape)} has none")
    if value.pads is not None and value.order is None:
        before, after = value.pads
        return Computed(value.name, value.stored), list(before[2:]), list(after[2:])
    spatial = len(value.shape) - 2
    return step.plain(value), [0] * spatial, [0] * spatial


@reads("Conv")
def conv(step: Step) -> Outputs:
    weights = step.constant(1, "the weights")
    x, before, after = _padded_input(step)
    window = window_of(step, weights.shape[2:], _around(x.shape[2:], before, after))
    before = [sum(one) for one in zip(before, window.before, strict=True)]
    after = [sum(one) for one in zip(after, window.after, strict=True)]
    group = int(step.attribute("group", 1))
    if group < 1 or weights.shape[1] * group != x.shape[1]:
        step.refuse(f"weights {list(weights.shape)} do not fit {x.shape[1]} channels")
    kernel, options = even_window(weights, before, after, window.stride, window.dilation)
    return _convolution(step, "Convolution", x, kernel, weights.shape[0], group, options)


def _around(sizes: Sequence[int], before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [sum(one) for one in zip(sizes, before, after, strict=True)]


def _convolution(
    step: Step,
    kind: str,
    x: Computed,
    kernel: Array,
    outputs: int,
    group: int,
    options: dict[str, Any],
) -> Computed:
    bias = step.optional(2, "the bias")
    if group != 1:
        options["group"] = group
    arrays = [kernel] if bias is None else [kernel, bias]
    return step.layer(kind, [x], arrays, num_output=outputs, bias_term=bias is not None, **options)


@reads("ConvTranspose")
def conv_transpose(step: Step) -> Outputs:
    """Rows that the node cuts off on one side only are made by zeros in the kernel."""
    weights, x = step.constant(1, "the weights"), step.blob()
    group, spatial = int(step.attribute("group", 1)), len(x.shape) - 2
    if weights.ndim != spatial + 2 or weights.shape[0] != x.shape[1]:
        step.refuse(f"weights {list(weights.shape)} do not fit the input {list(x.shape)}")
    window = window_of(step, weights.shape[2:], x.shape[2:])
    extra = [int(one) for one in step.attribute("output_padding") or [0] * spatial]
    before, after = _crop(step, window, x.shape[2:], extra)
    if any(max(ends) < 0 for ends in zip(before, after, strict=True)):
        step.refuse("its output is larger than its windows reach")
    kernel, options = even_window(weights, before, after, window.stride, window.dilation)
    outputs = weights.shape[1] * group
    return _convolution(step, "Deconvolution", x, kernel, outputs, group, options)


def _crop(
    step: Step, window: NodeWindow, sizes: Sequence[int], extra: list[int]
) -> tuple[list[int], list[int]]:
    """Return how much of the whole result is cut off before and after."""
    target = step.attribute("output_shape")
    if target is None and step.attribute("auto_pad", "NOTSET").startswith("SAME"):
        target = [size * s for size, s in zip(sizes, window.stride, strict=True)]
        if any(s > reach for s, reach in zip(window.stride, window.extent, strict=True)):
            # The outputs ought to be filled up; onnxruntime, ONNX's reference and the words of the
            # standard do so in three ways.
            step.refuse(
                f"its auto_pad with a stride of {window.stride} and windows of {window.extent} "
                "fills up its outputs, which libraries do otherwise: give pads and output_padding"
            )
    if target is None:
        return window.before, [a - e for a, e in zip(window.after, extra, strict=True)]
    before, after = [], []
    target = [int(one) for one in target][-len(sizes) :]
    upper = step.attribute("auto_pad") == "SAME_UPPER"
    for axis, (size, goal) in enumerate(zip(sizes, target, strict=True)):
        reach = window.stride[axis] * (size - 1) + window.extent[axis]
        total = max(0, reach + extra[axis] - goal)
        low = total // 2 if upper else total - total // 2
        before.append(low)
        after.append(reach - goal - low)
    return before, after


@reads("Col2Im")
def col2im(step: Step) -> Outputs:
    """Add up overlapping patches (PyTorch's fold): a deconvolution with kernels of one 1."""
    x = step.blob()
    sizes = [int(one) for one in np.ravel(step.constant(1, "the shape of the image"))]
    size = [int(one) for one in np.ravel(step.constant(2, "the shape of its patches"))]
    window = window_of(step, size, sizes)
    around = _around(sizes, window.before, window.after)
    free = [size - extent for size, extent in zip(around, window.extent, strict=True)]
    rows = [one // stride + 1 for one, stride in zip(free, window.stride, strict=True)]
    each = prod(size)
    fits = len(x.shape) == 3 and x.shape[1] % each == 0 and x.shape[2] == prod(rows)
    if not fits or min(free) < 0:
        step.refuse(f"{list(x.shape)} are no patches of {size} of an image of {sizes}")
    rest = [one % stride for one, stride in zip(free, window.stride, strict=True)]
    after = [pad - one for pad, one in zip(window.after, rest, strict=True)]
    if min(after) < 0:
        step.refuse("its patches leave out the end of the image")
    channels = x.shape[1] // each
    bounded((x.shape[1], each))
    ones = np.eye(each, dtype=np.float32).reshape(each, 1, *size)
    kernels = np.tile(ones, (channels, 1, *[1] * len(size)))
    kernel, options = even_window(kernels, window.before, after, window.stride, window.dilation)
    patches = step.reshape(x, (*x.shape[:2], *rows), part="patches")
    return step.layer(
        "Deconvolution",
        [patches],
        [kernel],
        num_output=channels,
        group=channels,
        bias_term=False,
        **options,
    )
