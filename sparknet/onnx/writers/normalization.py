"""Normalisation, factors and shifts."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.layer_export import LayerExport, writes
from sparknet.onnx.source import Array


@writes("BatchNorm")
def batch_norm(place: LayerExport) -> None:
    mean, variance, factor, *more = place.arrays
    channels, eps = mean.size, float(place.values["eps"])
    slope, shift = more or (np.ones(channels), np.zeros(channels))
    if not place.values["use_global_stats"]:
        by_batch(place, slope, shift, eps)
        return
    share = 0.0 if factor.flat[0] == 0 else 1 / factor.flat[0]
    momentum = float(place.values["moving_average_fraction"])
    running(place, slope, shift, mean * share, variance * share, eps, momentum=momentum)


def running(
    place: LayerExport,
    slope: Array,
    shift: Array,
    mean: Array,
    variance: Array,
    eps: float,
    **attributes: float,
) -> None:
    names = [place.constant(part.ravel()) for part in (slope, shift, mean, variance)]
    place.last("BatchNormalization", [place.inputs[0], *names], epsilon=eps, **attributes)


def by_batch(place: LayerExport, slope: Array, shift: Array, eps: float) -> None:
    """By the statistics of the batch at hand."""
    shape = place.shapes[0]
    axes = [axis for axis in range(len(shape)) if axis != 1]
    lined = (-1, *[1] * (len(shape) - 2))
    output = standardised(place, axes, eps)
    output = place.put("Mul", [output, place.constant(slope.reshape(lined))])
    place.last("Add", [output, place.constant(shift.reshape(lined))])


def standardised(place: LayerExport, axes: list[int], eps: float) -> str:
    """(x - mean) / sqrt(variance + eps)."""
    x = place.inputs[0]
    centred = place.put("Sub", [x, place.reduce("ReduceMean", x, axes)])
    variance = place.reduce("ReduceMean", place.put("Mul", [centred, centred]), axes)
    root = place.put("Sqrt", [place.put("Add", [variance, place.constant(eps)])])
    return place.put("Div", [centred, root])


@writes("BN")
def bn(place: LayerExport) -> None:
    """Write the forks' BN: a slope and a bias, by batch or running statistics or none."""
    if len(place.outputs) > 1:
        place.refuse("the statistics that it shows are not written")
    kind, eps = place.values["statistics"], float(place.values["eps"])
    slope, shift, *statistics = place.arrays
    if kind == "batch":
        by_batch(place, slope, shift, eps)
        return
    if kind == "none":
        statistics, eps = [np.zeros(slope.size), np.ones(slope.size)], 0.0
    running(place, slope, shift, statistics[0], statistics[1], eps)


def spread(place: LayerExport, name: str, axes: int, axis: int) -> str:
    """Return a blob that lies along the axes from `axis` on."""
    behind = len(place.shapes[0]) - axis - axes
    if behind <= 0:
        return name
    last = [axes + one for one in range(behind)]
    return place.put("Unsqueeze", [name, place.whole(last)])


@writes("Scale")
def scale(place: LayerExport) -> None:
    axis, biased = int(place.values["axis"]), bool(place.values["bias_term"])
    arrays = list(place.arrays)
    axes = int(place.values["num_axes"])
    behind = [1] * (len(place.shapes[0]) - axis - axes)
    if len(place.inputs) > 1:
        factor = spread(place, place.inputs[1], axes, axis)
    else:
        first = arrays.pop(0)
        factor = place.constant(first.reshape(*first.shape, *behind))
    if not biased:
        place.last("Mul", [place.inputs[0], factor])
        return
    shift = place.constant(arrays[0].reshape(*arrays[0].shape, *behind))
    place.last("Add", [place.put("Mul", [place.inputs[0], factor]), shift])


@writes("Bias")
def bias(place: LayerExport) -> None:
    axis, axes = int(place.values["axis"]), int(place.values["num_axes"])
    if len(place.inputs) > 1:
        shift = spread(place, place.inputs[1], axes, axis)
    else:
        array = place.arrays[0]
        shift = place.constant(
            array.reshape(*array.shape, *[1] * (len(place.shapes[0]) - axis - axes))
        )
    place.last("Add", [place.inputs[0], shift])


@writes("Axpy")
def axpy(place: LayerExport) -> None:
    factor = place.inputs[0]
    if len(place.shapes[0]) == 2:
        factor = place.put("Unsqueeze", [factor, place.whole([2, 3])])
    place.last("Add", [place.put("Mul", [place.inputs[1], factor]), place.inputs[2]])


@writes("LRN")
def lrn(place: LayerExport) -> None:
    options, x = place.options, place.inputs[0]
    size = int(options.local_size)
    if place.values["norm_region"] == "across_channels":
        place.last("LRN", [x], size=size, alpha=options.alpha, beta=options.beta, bias=options.k)
        return
    square, pad = place.put("Mul", [x, x]), (size - 1) // 2
    mean = place.put(
        "AveragePool", [square], kernel_shape=[size] * 2, pads=[pad] * 4, count_include_pad=1
    )
    sum_ = place.put(
        "Add", [place.put("Mul", [mean, place.constant(options.alpha)]), place.constant(1.0)]
    )
    place.last("Mul", [x, place.put("Pow", [sum_, place.constant(-options.beta)])])


@writes("MVN")
def mvn(place: LayerExport) -> None:
    values, x = place.values, place.inputs[0]
    if len(place.shapes[0]) != 4:
        x = place.view(x, place.tops[0])
    axes = [1, 2, 3] if values["across_channels"] else [2, 3]
    centred = place.put("Sub", [x, place.reduce("ReduceMean", x, axes)])
    if not values["normalize_variance"]:
        place.last("Identity", [centred])
        return
    variance = place.reduce("ReduceMean", place.put("Mul", [centred, centred]), axes)
    below = place.put("Add", [place.put("Sqrt", [variance]), place.constant(values["eps"])])
    place.last("Div", [centred, below])


@writes("LayerNorm")
def layer_norm(place: LayerExport) -> None:
    axis, eps = int(place.values["axis"]), float(place.values["eps"])
    shape, x = place.shapes[0], place.inputs[0]
    if place.opset >= 17:
        ones = place.constant(np.ones(shape[axis:]))
        place.last("LayerNormalization", [x, ones], axis=axis, epsilon=eps)
        return
    place.last("Identity", [standardised(place, list(range(axis, len(shape))), eps)])


@writes("Normalize")
def normalize(place: LayerExport) -> None:
    """SSD's: over the channels of each place, or over the whole image; then factors, if any."""
    options, x = place.options, place.inputs[0]
    axes = [1, 2, 3] if options.across_spatial else [1]
    sum_ = place.reduce("ReduceSum", place.put("Mul", [x, x]), axes)
    root = place.put("Sqrt", [place.put("Add", [sum_, place.constant(options.eps)])])
    if not place.arrays:
        place.last("Div", [x, root])
        return
    factors = place.arrays[0].reshape(1, -1, 1, 1)
    place.last("Mul", [place.put("Div", [x, root]), place.constant(factors)])
