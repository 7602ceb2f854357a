"""Convolutions, pooling and fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.onnx.layer_export import LayerExport, writes
from sparknet.onnx.source import Array


@writes("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution", "Convolution3D")
def convolution(place: LayerExport) -> None:
    _windows(place, "Conv")


@writes("Deconvolution", "Deconvolution3D")
def deconvolution(place: LayerExport) -> None:
    _windows(place, "ConvTranspose")


def _windows(place: LayerExport, op: str) -> None:
    values, weights = place.values, place.arrays[0]
    axis, channels = int(values.get("axis", 1)), weights.shape[1]
    pads, kernel = [int(pad) for pad in values["pad"]], [int(size) for size in values["kernel"]]
    if not kernel:
        place.refuse("a convolution without spatial axes is not written")
    numbers = [place.weights(weights), *place.biases()]
    for x, shape, top, output in zip(
        place.inputs, place.shapes, place.tops, place.outputs, strict=True
    ):
        if min(top, default=1) < 1:
            place.refuse("the kernel is larger than the input: nothing comes out")
        extents = [d * (k - 1) + 1 for k, d in zip(kernel, values["dilation"], strict=True)]
        # Caffe takes the axes before the channels as so many images, and rounds sizes below 0 up.
        after = pads
        if op == "Conv":
            reach = zip(top[axis + 1 :], values["stride"], extents, shape[axis + 1 :], strict=True)
            after = [
                max(pad, (count - 1) * s + extent - size - pad)
                for pad, (count, s, extent, size) in zip(pads, reach, strict=True)
            ]
        images = axis != 1
        blobs = place.view(x, (-1, *shape[axis:])) if images else x
        sides = [*pads, *after]
        if op == "Conv" and any(sides) and {*kernel, *values["stride"]} == {1}:
            # OpenCV 5.0 reads beyond the image where a 1 x 1 kernel has padding.
            blobs = place.put("Pad", [blobs, place.whole([0, 0, *pads, 0, 0, *after])])
            sides = [0] * len(sides)
        blobs = place.put(
            op,
            [blobs, *numbers],
            None if images else output,
            kernel_shape=kernel,
            strides=[int(size) for size in values["stride"]],
            dilations=[int(size) for size in values["dilation"]],
            pads=[int(pad) for pad in sides],
            group=shape[axis] // channels if op == "Conv" else int(values.get("group", 1)),
        )
        if images:
            place.put("Reshape", [blobs, place.whole([-1, *top[1:]])], output)


@writes("InnerProduct")
def inner_product(place: LayerExport) -> None:
    values, weights = place.values, place.arrays[0]
    if not values["transpose"]:
        weights = weights.T
    if values.get("normalize"):
        place.refuse("normalized weights are not written")
    axis, shape = int(values["axis"]), place.shapes[0]
    x, inputs = place.inputs[0], int(weights.shape[0])
    if shape[axis:] != (inputs,):
        x = place.view(x, (*shape[:axis], inputs))
    if axis == 1:
        place.last("Gemm", [x, place.weights(weights, 1), *place.biases()])
        return
    output = place.put("MatMul", [x, place.weights(weights, 1)])
    biases = place.biases()
    place.last("Add" if biases else "Identity", [output, *biases])


@writes("Pooling")
def pooling(place: LayerExport) -> None:
    values = place.values
    method = values["method"]
    if values.get("global_pooling") and method in ("max", "ave") and len(place.outputs) == 1:
        name = "Max" if method == "max" else "Average"
        place.last(f"Global{name}Pool", place.inputs)
        return
    pool(place, place.inputs[0], values, place.tops[0][2:], place.outputs[0])


def pool(
    place: LayerExport, x: str, values: Any, outputs: Sequence[int], output: str | None = None
) -> str:
    """Pooling of an image by Caffe's rules, in ONNX's words."""
    size, kernel = place.shapes[0][2:], [int(one) for one in values["kernel"]]
    stride, before = list(values["stride"]), list(values["pad"])
    after = [
        max(0, (count - 1) * s + k - n - b)
        for count, s, k, n, b in zip(outputs, stride, kernel, size, before, strict=True)
    ]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [int(one) for one in stride],
        "pads": [int(one) for one in (*before, *after)],
    }
    if any(pad >= k for pad, k in zip((*before, *after), kernel * 2, strict=True)):
        place.refuse("a window that lies in the padding alone has no operator")
    if values["method"] == "max":
        return _maxima(place, x, size, output, attributes)
    if values["method"] == "stochastic":
        # When testing, each value counts by its share of the sum.
        square = place.put("Mul", [x, x])
        above = place.put("AveragePool", [square], count_include_pad=1, **attributes)
        below = place.put("AveragePool", [x], count_include_pad=1, **attributes)
        floor = place.put("Max", [below, place.constant(np.finfo(np.float32).tiny)])
        return place.put("Div", [above, floor], output)
    factors = _factors(outputs, size, kernel, stride, before)
    if np.all(factors == 1):
        return place.put("AveragePool", [x], output, count_include_pad=1, **attributes)
    average = place.put("AveragePool", [x], count_include_pad=1, **attributes)
    return place.put("Mul", [average, place.constant(factors)], output)


def _maxima(
    place: LayerExport, x: str, size: Sequence[int], output: str | None, attributes: dict[str, Any]
) -> str:
    """Caffe counts the places of maxima within each image, ONNX through the whole blob."""
    if len(place.outputs) == 1:
        return place.put("MaxPool", [x], output, **attributes)
    places = f"{place.outputs[1]}/places"
    maxima = place.put("MaxPool", [x], [place.outputs[0], places], **attributes)
    inside = place.put("Mod", [places, place.whole(int(np.prod(size)))])
    place.put("Cast", [inside], place.outputs[1], to=1)
    return maxima


def _factors(
    outputs: Sequence[int],
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
) -> Array:
    """Return the whole window over Caffe's divisor, with as much padding behind as before."""
    shares = []
    for count, n, k, s, p in zip(outputs, size, kernel, stride, pad, strict=True):
        starts = np.arange(count) * s - p
        shares.append(k / (np.minimum(starts + k, n + p) - starts))
    return np.multiply.outer(*shares)[None, None].astype(np.float32)


@writes("SPP")
def spp(place: LayerExport) -> None:
    n, c = place.shapes[0][:2]
    levels = []
    for level in place.values["levels"]:
        levels.append((pool(place, place.inputs[0], level, level["output"]), level["output"]))
    if len(levels) == 1:
        place.last("Identity", [levels[0][0]])
        return
    flat = [place.view(name, (n, c * size[0] * size[1])) for name, size in levels]
    place.last("Concat", flat, axis=1)


@writes("ROIPooling")
def roi_pooling(place: LayerExport) -> None:
    if place.options.pad_ratio:
        place.refuse("pad_ratio is not written")
    options = place.options
    place.last(
        "MaxRoiPool",
        place.inputs,
        pooled_shape=[int(options.pooled_h), int(options.pooled_w)],
        spatial_scale=float(options.spatial_scale),
    )


@writes("Im2col")
def im2col(place: LayerExport) -> None:
    """Write a convolution that copies: one channel for each place of the kernel."""
    values = place.values
    channels, kernel = place.shapes[0][1], [int(one) for one in values["kernel"]]
    count = int(np.prod(kernel))
    weights = np.tile(
        np.eye(count, dtype=np.float32).reshape(count, 1, *kernel),
        (channels, *[1] * (len(kernel) + 1)),
    )
    pads = [int(one) for one in values["pad"]]
    place.last(
        "Conv",
        [place.inputs[0], place.constant(weights)],
        kernel_shape=kernel,
        strides=[int(one) for one in values["stride"]],
        dilations=[int(one) for one in values["dilation"]],
        pads=pads + pads,
        group=channels,
    )
