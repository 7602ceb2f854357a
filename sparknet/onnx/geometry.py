"""What ONNX operators do to shapes, and windows with the even padding of Caffe."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from sparknet.onnx.limits import bounded
from sparknet.onnx.source import Array, OnnxNode

Inputs = Sequence[Any]


def axes_of(node: OnnxNode, inputs: Inputs, place: int = 1) -> list[int] | None:
    """Axes that are an attribute in old opsets and an input in new ones."""
    if "axes" in node.attributes:
        return [int(axis) for axis in node.attributes["axes"]]
    if len(inputs) > place and inputs[place] is not None:
        return [int(axis) for axis in np.ravel(inputs[place])]
    return None


def reshaped(shape: Sequence[int], target: Sequence[int], keep_zero: bool) -> tuple[int, ...]:
    """ONNX's Reshape: a 0 copies a size unless ``keep_zero``, one -1 takes what is left."""
    sizes = [size if isinstance(size, int) else int(size) for size in target]
    for place, size in enumerate(sizes):
        if size == 0 and not keep_zero:
            if place >= len(shape):
                raise ValueError(f"a size of 0 copies axis {place}, of which there is none")
            sizes[place] = shape[place]
    if sizes.count(-1) == 1:
        rest = -prod(sizes)
        if rest == 0 or prod(shape) % rest:
            raise ValueError(f"{list(shape)} does not become {list(target)}")
        sizes[sizes.index(-1)] = prod(shape) // rest
    if prod(sizes) != prod(shape) or min(sizes, default=0) < 0:
        raise ValueError(f"{list(shape)} does not become {list(target)}")
    return tuple(sizes)


def slices(
    shape: Sequence[int], starts: Sequence[int], ends: Sequence[int], axes: Any, steps: Any
) -> list[range]:
    """Return what ONNX's Slice takes of each axis."""
    ranges = [range(size) for size in shape]
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = int(axis) + (len(shape) if axis < 0 else 0)
        if step < 0 and end in _MOST:
            raise ValueError(
                f"it goes backwards to {end}, which is the first value for some and none for others"
            )
        if step < 0 and start < -shape[axis]:
            start = 0  # the first place, where Python takes none
        ranges[axis] = range(shape[axis])[slice(*_ends(int(start), int(end), int(step)))]
    return ranges


_MOST = (2**31 - 1, 2**63 - 1)
"""For onnxruntime, the end of an axis in either direction."""


def _ends(start: int, end: int, step: int) -> tuple[int, int | None, int]:
    # Below every axis means "to the first" when going backwards; Python's slices say None.
    return start, None if step < 0 and end <= -(2**31) + 1 else end, step


def split_sizes(node: OnnxNode, inputs: Inputs, size: int) -> list[int]:
    """Return the pieces of ONNX's Split."""
    sizes = node.attributes.get("split")
    if sizes is None and len(inputs) > 1 and inputs[1] is not None:
        sizes = np.ravel(inputs[1])
    if sizes is not None:
        return [int(one) for one in sizes]
    pieces = int(node.attributes.get("num_outputs", len(node.outputs)))
    if not 0 < pieces <= max(size, 1):
        raise ValueError(f"{pieces} pieces of an axis of size {size}")
    each = -(-size // pieces)
    return [min(each, size - each * place) for place in range(pieces)]


def slice_arguments(node: OnnxNode, inputs: Inputs) -> tuple[Any, Any, Any, Any]:
    """Starts, ends, axes and steps."""
    if "starts" in node.attributes:
        attributes = node.attributes
        return attributes["starts"], attributes["ends"], attributes.get("axes"), None
    bounds = [None if one is None else np.ravel(one).tolist() for one in inputs[1:]]
    bounds += [None] * (4 - len(bounds))
    return bounds[0], bounds[1], bounds[2], bounds[3]


def even_window(
    weights: Array,
    before: Sequence[int],
    after: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> tuple[Array, dict[str, Any]]:
    """Return weights, grown by zeros, and options with as much padding before as after."""
    zeros, pads = [(0, 0), (0, 0)], []
    for low, high, gap in zip(before, after, dilation, strict=True):
        taps, rest = divmod(abs(high - low), gap)
        if rest:
            raise ValueError(
                f"pads {low} and {high} are uneven, and dilation {gap} does not divide it"
            )
        zeros.append((taps, 0) if high > low else (0, taps))
        pads.append(max(low, high))
    bounded([size + sum(more) for size, more in zip(weights.shape, zeros, strict=True)], [weights])
    kernel = np.pad(weights, zeros)
    options: dict[str, Any] = {
        **_sizes("kernel_size", ("kernel_h", "kernel_w"), kernel.shape[2:]),
        **_sizes("stride", ("stride_h", "stride_w"), stride, 1),
        **_sizes("pad", ("pad_h", "pad_w"), pads, 0),
    }
    if any(gap != 1 for gap in dilation):
        options["dilation"] = list(dilation) if len(set(dilation)) > 1 else [dilation[0]]
    return kernel, options


def _sizes(
    name: str, apart: tuple[str, str], sizes: Sequence[int], default: int | None = None
) -> dict[str, Any]:
    if all(size == default for size in sizes):
        return {}
    if len(set(sizes)) == 1:
        return {name: [int(sizes[0])]}
    if len(sizes) == 2:
        return {apart[0]: int(sizes[0]), apart[1]: int(sizes[1])}
    return {name: [int(size) for size in sizes]}
