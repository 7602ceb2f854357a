"""Normalisation, factors and shifts."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.writing import Place, writes


@writes("BatchNorm")
def batch_norm(place: Place) -> None:
    if not place.values["use_global_stats"]:
        place.refuse("statistics of the batch are not written: use_global_stats must be true")
    if len(place.arrays) != 3:
        place.refuse("only Caffe's own form, of three parameters, is written")
    mean, variance, factor = place.arrays
    share = 0.0 if factor.flat[0] == 0 else 1 / factor.flat[0]
    channels = mean.size
    parts = (np.ones(channels), np.zeros(channels), mean * share, variance * share)
    names = [place.constant(part) for part in parts]
    place.last("BatchNormalization", [place.inputs[0], *names], epsilon=float(place.values["eps"]))


def spread(place: Place, name: str, axes: int, axis: int) -> str:
    """A blob that lies along the axes from `axis` on."""
    behind = len(place.shapes[0]) - axis - axes
    if behind <= 0:
        return name
    last = [axes + one for one in range(behind)]
    return place.put("Unsqueeze", [name, place.whole(last)])


@writes("Scale")
def scale(place: Place) -> None:
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
def bias(place: Place) -> None:
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
def axpy(place: Place) -> None:
    factor = place.inputs[0]
    if len(place.shapes[0]) == 2:
        factor = place.put("Unsqueeze", [factor, place.whole([2, 3])])
    place.last("Add", [place.put("Mul", [place.inputs[1], factor]), place.inputs[2]])


@writes("LRN")
def lrn(place: Place) -> None:
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
def mvn(place: Place) -> None:
    if len(place.shapes[0]) != 4:
        place.refuse("only images are written")
    values, x = place.values, place.inputs[0]
    axes = [1, 2, 3] if values["across_channels"] else [2, 3]
    centred = place.put("Sub", [x, place.reduce("ReduceMean", x, axes)])
    if not values["normalize_variance"]:
        place.last("Identity", [centred])
        return
    variance = place.reduce("ReduceMean", place.put("Mul", [centred, centred]), axes)
    below = place.put("Add", [place.put("Sqrt", [variance]), place.constant(values["eps"])])
    place.last("Div", [centred, below])


@writes("LayerNorm")
def layer_norm(place: Place) -> None:
    axis, eps = int(place.values["axis"]), float(place.values["eps"])
    shape, x = place.shapes[0], place.inputs[0]
    if place.opset >= 17:
        ones = place.constant(np.ones(shape[axis:]))
        place.last("LayerNormalization", [x, ones], axis=axis, epsilon=eps)
        return
    axes = list(range(axis, len(shape)))
    centred = place.put("Sub", [x, place.reduce("ReduceMean", x, axes)])
    variance = place.reduce("ReduceMean", place.put("Mul", [centred, centred]), axes)
    root = place.put("Sqrt", [place.put("Add", [variance, place.constant(eps)])])
    place.last("Div", [centred, root])


@writes("Normalize")
def normalize(place: Place) -> None:
    """SSD's: over the channels of each place, or over the whole image; then factors."""
    options, x = place.options, place.inputs[0]
    axes = [1, 2, 3] if options.across_spatial else [1]
    sum_ = place.reduce("ReduceSum", place.put("Mul", [x, x]), axes)
    root = place.put("Sqrt", [place.put("Add", [sum_, place.constant(options.eps)])])
    factors = place.arrays[0].reshape(1, -1, 1, 1)
    place.last("Mul", [place.put("Div", [x, root]), place.constant(factors)])
