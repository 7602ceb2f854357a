"""Pooling: Caffe's sizes, divisors and padding against ONNX's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from sparknet.layers.pooling import window_count
from sparknet.onnx.netlist import Computed
from sparknet.onnx.operators.convolution import NodeWindow, window_of
from sparknet.onnx.operators.slicing import gather_places
from sparknet.onnx.sizes import is_same
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_MOST = 1 << 20
"""Windows along an axis."""


@reads("GlobalAveragePool", "GlobalMaxPool")
def global_pool(step: Step) -> Outputs:
    x = step.blob()
    if step.is_batched(x.shape[2:]):
        step.refuse("it pools over the records, of which there may be any number")
    method = "AVE" if step.op == "GlobalAveragePool" else "MAX"
    shape = (*x.shape[:2], *[1] * (len(x.shape) - 2))
    if len(x.shape) == 4:
        return step.layer("Pooling", [x], pool=method, global_pooling=True)
    return step.reshape(over_all(step, _image(step, x, len(x.shape) - 2), method), shape)


def over_all(step: Step, image: Computed, method: str, part: str = "pooled") -> Computed:
    return step.layer("Pooling", [image], part=part, pool=method, global_pooling=True)


def _image(step: Step, x: Computed, spatial: int) -> Computed:
    """Return a blob of one spatial axis, or of many that are pooled as one, as an image."""
    size = prod(x.shape[2:])
    return step.reshape(x, (*x.shape[:2], 1, size), part="image")


@reads("MaxRoiPool")
def regions(step: Step) -> Outputs:
    high, wide = (int(one) for one in step.attribute("pooled_shape"))
    scale = float(step.attribute("spatial_scale", 1.0))
    both = [step.blob(0), step.blob(1)]
    return step.layer("ROIPooling", both, pooled_h=high, pooled_w=wide, spatial_scale=scale)


@reads("MaxPool", "AveragePool")
def pool(step: Step) -> Outputs:
    if len(step.node.outputs) > 1 and step.node.outputs[1]:
        step.refuse("the places of its maxima are read, which ONNX counts otherwise than Caffe")
    average = step.op == "AveragePool"
    value = step.value(0)
    before: Sequence[int] = ()
    after: Sequence[int] = ()
    include = bool(step.attribute("count_include_pad", 0))
    takes_pads = average and include and isinstance(value, Computed) and value.order is None
    if takes_pads and isinstance(value, Computed) and value.pads is not None:
        before, after = value.pads[0][2:], value.pads[1][2:]
        x = Computed(value.name, value.stored)
    else:
        x = step.blob()
    spatial = len(x.shape) - 2
    if spatial not in (1, 2, 3):
        step.refuse(f"pooling over {spatial} axes has no layer")
    before, after = before or (0,) * spatial, after or (0,) * spatial
    sizes = [sum(one) for one in zip(x.shape[2:], before, after, strict=True)]
    window = window_of(step, [int(k) for k in step.attribute("kernel_shape") or []], sizes)
    if any(gap != 1 for gap in window.dilation):
        step.refuse("pooling with dilation has no layer")
    outputs = _outputs(step, window, sizes)
    window.before = [sum(one) for one in zip(window.before, before, strict=True)]
    window.after = [sum(one) for one in zip(window.after, after, strict=True)]
    if spatial == 1:
        flat = _pooled(step, _image(step, x, 1), _flat(window), [1, *outputs], average, "pooled")
        return step.reshape(flat, (*x.shape[:2], *outputs))
    if spatial == 3:
        return _volume(step, x, window, outputs, average)
    return _pooled(step, x, window, outputs, average, None)


def _volume(
    step: Step, x: Computed, window: NodeWindow, outputs: list[int], average: bool
) -> Computed:
    """Pool within each image, then over the images: a maximum of maxima, a mean of means."""
    n, c, depth, *area = x.shape
    image = step.reshape(x, (n, c * depth, *area), part="images")
    plane = _pooled(step, image, window.some(1, 2), outputs[1:], average, "plane")
    rows = step.reshape(plane, (n, c, depth, outputs[1] * outputs[2]), part="rows")
    alone = window.some(0)
    over = NodeWindow(
        *([one[0], other] for one, other in zip(alone.lists, (1, 1, 1, 0, 0), strict=True))
    )
    output = _pooled(step, rows, over, [outputs[0], rows.shape[3]], average, "over")
    return step.reshape(output, (n, c, *outputs))


def _flat(window: NodeWindow) -> NodeWindow:
    return NodeWindow(
        [1, *window.kernel], [1, *window.stride], [1, 1], [0, *window.before], [0, *window.after]
    )


def _outputs(step: Step, window: NodeWindow, sizes: Sequence[int]) -> list[int]:
    """Return a window that would begin in the padding behind the image is left out, as in Caffe."""
    ceil, include = (step.attribute(name, 0) for name in ("ceil_mode", "count_include_pad"))
    lengths = []
    for axis, size in enumerate(sizes):
        before, after = window.before[axis], window.after[axis]
        room, stride = size + before + after - window.kernel[axis], window.stride[axis]
        outputs = (-(-room // stride) if ceil or (room < 0 and not include) else room // stride) + 1
        if ceil and (outputs - 1) * stride >= size + before:
            outputs -= 1
        if not 0 < outputs <= _MOST:
            step.refuse(f"the kernel {window.kernel} does not fit {list(sizes)}")
        lengths.append(outputs)
    return lengths


def _pooled(
    step: Step, x: Computed, window: NodeWindow, outputs: list[int], average: bool, part: str | None
) -> Computed:
    mode = _round_mode(x, window, outputs)
    if mode is None:
        return _pooled_apart(step, x, window, outputs, average, part)
    options = {**_options(window, average), **mode}
    if not average:
        return step.layer("Pooling", [x], part=part, **options)
    factors = _factors(step, x, window, outputs)
    if np.all(factors == 1):
        return step.layer("Pooling", [x], part=part, **options)
    output = step.layer("Pooling", [x], part="averaged", **options)
    return step.layer("Scale", [output], [factors], part=part, axis=2, num_axes=2, bias_term=False)


def _options(window: NodeWindow, average: bool) -> dict[str, Any]:
    """Return the options of a Pooling, one number where height and width agree."""
    options: dict[str, Any] = {"pool": "AVE" if average else "MAX"}
    for name, both, default, (high, wide) in (
        ("kernel", "kernel_size", 0, window.kernel),
        ("stride", "stride", 1, window.stride),
        ("pad", "pad", 0, window.before),
    ):
        if high != wide:
            options[f"{name}_h"], options[f"{name}_w"] = high, wide
        elif high != default:
            options[both] = high
    return options


def _pooled_apart(
    step: Step, x: Computed, window: NodeWindow, outputs: list[int], average: bool, part: str | None
) -> Computed:
    """Padding in a layer of its own: the zeros of an average, or the edge of a maximum again."""
    reach = [
        (count - 1) * stride + kernel - size - before
        for count, stride, kernel, size, before in zip(
            outputs, window.stride, window.kernel, x.shape[2:], window.before, strict=True
        )
    ]
    after = [max(one, 0) for one in reach]
    if average:
        around = step.padded(x, [0, 0, *window.before], [0, 0, *after])
    else:
        around = x
        for axis, (low, high) in enumerate(zip(window.before, after, strict=True), 2):
            places = np.pad(np.arange(x.shape[axis]), (low, high), mode="edge").tolist()
            around = gather_places(step, around, axis, places, part=f"padded_{axis}")
    bare = NodeWindow(window.kernel, window.stride, window.dilation, [0, 0], [0, 0])
    mode = _round_mode(around, bare, outputs) or {"round_mode": "FLOOR"}
    options = {**_options(bare, average), **mode}
    if not average:
        return step.layer("Pooling", [around], part=part, **options)
    output = step.layer("Pooling", [around], part="averaged", **options)
    whole = np.full(outputs, float(np.prod(window.kernel)))
    factors = np.asarray(whole / _divisors(step, x, window, outputs), np.float32)
    return step.layer("Scale", [output], [factors], part=part, axis=2, num_axes=2, bias_term=False)


def _round_mode(x: Computed, window: NodeWindow, outputs: list[int]) -> dict[str, Any] | None:
    """Return how Caffe must round for the same number of windows; None: it cannot."""
    for mode, options in (("ceil", {}), ("floor", {"round_mode": "FLOOR"})):
        axes = zip(x.shape[2:], window.kernel, window.stride, window.before, strict=True)
        counts = [window_count(*axis, mode, any(window.before)) for axis in axes]
        if all(map(is_same, counts, outputs)):
            return options
    return None


def _factors(step: Step, x: Computed, window: NodeWindow, outputs: list[int]) -> Array:
    """Return Caffe's divisor over ONNX's for each place: Caffe counts symmetric padding."""
    caffe = []
    for axis, size in enumerate(x.shape[2:]):
        starts, ends = _bounds(window, outputs, axis)
        caffe.append(np.minimum(ends, size + window.before[axis]) - starts)
    return np.asarray(np.multiply.outer(*caffe) / _divisors(step, x, window, outputs), np.float32)


def _bounds(window: NodeWindow, outputs: list[int], axis: int) -> tuple[Array, Array]:
    starts = np.arange(int(outputs[axis])) * window.stride[axis] - window.before[axis]
    return starts, starts + window.kernel[axis]


def _divisors(step: Step, x: Computed, window: NodeWindow, outputs: list[int]) -> Array:
    """Return what ONNX divides by, for each place."""
    include = bool(step.attribute("count_include_pad", 0))
    divisors = []
    for axis, size in enumerate(x.shape[2:]):
        starts, ends = _bounds(window, outputs, axis)
        if include:
            divisors.append(np.minimum(ends, size + window.after[axis]) - starts)
        else:
            divisors.append(np.maximum(np.minimum(ends, size) - np.maximum(starts, 0), 1))
    return np.asarray(np.multiply.outer(*divisors))
