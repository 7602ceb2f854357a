"""Layers that compute value by value, products and reductions."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.layer_export import LayerExport, writes

_SAME = {
    "AbsVal": "Abs",
    "BNLL": "Softplus",
    "Div": "Div",
    "Sigmoid": "Sigmoid",
    "SpatialDropout": "Identity",
    "TanH": "Tanh",
}


_FUNCTIONS = {"ceil": "Ceil", "cos": "Cos", "floor": "Floor", "round": "Round", "sin": "Sin"}


@writes("Math")
def function(place: LayerExport) -> None:
    """Dropping fractions is rounding the size down, with the sign of the number."""
    name = str(place.values["function"])
    if name != "trunc":
        place.last(_FUNCTIONS[name], [place.inputs[0]])
        return
    down = place.put("Floor", [place.put("Abs", [place.inputs[0]])])
    place.last("Mul", [down, place.put("Sign", [place.inputs[0]])])


@writes(*_SAME)
def same(place: LayerExport) -> None:
    place.last(_SAME[place.node.type], place.inputs)


@writes("ReLU")
def relu(place: LayerExport) -> None:
    slope = float(place.options.negative_slope)
    if slope:
        place.last("LeakyRelu", place.inputs, alpha=slope)
    else:
        place.last("Relu", place.inputs)


@writes("ReLU6")
def relu6(place: LayerExport) -> None:
    place.last("Clip", [place.inputs[0], place.constant(0.0), place.constant(6.0)])


@writes("Clip")
def clip(place: LayerExport) -> None:
    low, high = place.constant(place.options.min), place.constant(place.options.max)
    place.last("Clip", [place.inputs[0], low, high])


@writes("ELU")
def elu(place: LayerExport) -> None:
    place.last("Elu", place.inputs, alpha=float(place.options.alpha))


@writes("PReLU")
def prelu(place: LayerExport) -> None:
    slopes = place.arrays[0]
    if slopes.size > 1 or not place.options.channel_shared:
        slopes = slopes.reshape(-1, *[1] * (len(place.shapes[0]) - 2))
    place.last("PRelu", [place.inputs[0], place.constant(slopes)])


@writes("Dropout")
def dropout(place: LayerExport) -> None:
    scale = float(place.values.get("test_scale", 1.0))
    if scale == 1:
        place.last("Identity", place.inputs)
    else:
        place.last("Mul", [place.inputs[0], place.constant(scale)])


def affine(place: LayerExport, x: str, scale: float, shift: float) -> str:
    if scale != 1:
        x = place.put("Mul", [x, place.constant(scale)])
    if shift != 0:
        x = place.put("Add", [x, place.constant(shift)])
    return x


@writes("Power")
def power(place: LayerExport) -> None:
    options = place.options
    x = affine(place, place.inputs[0], options.scale, options.shift)
    if options.power == 1:
        place.last("Identity", [x])
    elif options.power == 2:
        place.last("Mul", [x, x])
    elif options.power == 0.5:
        place.last("Sqrt", [x])
    elif options.power == -1:
        place.last("Reciprocal", [x])
    else:
        place.last("Pow", [x, place.constant(options.power)])


@writes("Exp")
def exp(place: LayerExport) -> None:
    options = place.options
    log = 1.0 if options.base == -1 else float(np.log(options.base))
    place.last("Exp", [affine(place, place.inputs[0], options.scale * log, options.shift * log)])


@writes("Log")
def log(place: LayerExport) -> None:
    options = place.options
    x = affine(place, place.inputs[0], options.scale, options.shift)
    if options.base == -1:
        place.last("Log", [x])
        return
    natural = place.put("Log", [x])
    place.last("Mul", [natural, place.constant(1 / np.log(options.base))])


@writes("Threshold")
def threshold(place: LayerExport) -> None:
    above = place.put("Greater", [place.inputs[0], place.constant(place.options.threshold)])
    place.last("Cast", [above], to=1)


@writes("Swish")
def swish(place: LayerExport) -> None:
    x = place.inputs[0]
    inner = affine(place, x, place.options.beta, 0.0)
    place.last("Mul", [x, place.put("Sigmoid", [inner])])


@writes("HardSwish")
def hard_swish(place: LayerExport) -> None:
    x = place.inputs[0]
    if place.opset >= 14:
        place.last("HardSwish", [x])
    else:
        place.last("Mul", [x, place.put("HardSigmoid", [x], alpha=1 / 6, beta=0.5)])


@writes("Mish")
def mish(place: LayerExport) -> None:
    x = place.inputs[0]
    if place.opset >= 18:
        place.last("Mish", [x])
    else:
        place.last("Mul", [x, place.put("Tanh", [place.put("Softplus", [x])])])


@writes("GELU")
def gelu(place: LayerExport) -> None:
    x = place.inputs[0]
    by_tanh = place.values["approximate"] == "tanh"
    if place.opset >= 20:
        place.last("Gelu", [x], approximate="tanh" if by_tanh else "none")
        return
    if by_tanh:
        cube = place.put("Pow", [x, place.constant(3.0)])
        sum_ = place.put("Add", [x, place.put("Mul", [cube, place.constant(0.044715)])])
        bent = place.put("Tanh", [place.put("Mul", [sum_, place.constant((2 / np.pi) ** 0.5)])])
    else:
        bent = place.put("Erf", [place.put("Div", [x, place.constant(2**0.5)])])
    share = place.put("Mul", [place.put("Add", [bent, place.constant(1.0)]), place.constant(0.5)])
    place.last("Mul", [x, share])


@writes("Softmax")
def softmax(place: LayerExport) -> None:
    place.last("Softmax", place.inputs, axis=int(place.values["axis"]))


@writes("LogSoftmax")
def log_softmax(place: LayerExport) -> None:
    place.last("LogSoftmax", place.inputs, axis=int(place.values["axis"]))


@writes("ArgMax")
def argmax(place: LayerExport) -> None:
    """Write a TopK of reversed values: among equal ones Caffe takes the last, TopK the first."""
    axis, most = place.values["axis"], int(place.values["top_k"])
    x, whole = place.inputs[0], axis is None
    if whole:
        x = place.put("Flatten", [x], axis=1)
        axis = 1
    if most == 1 and not place.values["out_max_val"]:
        places = place.put("ArgMax", [x], axis=axis, keepdims=1, select_last_index=1)
        output = place.put("Cast", [places], to=1)
    else:
        output = _best(place, x, int(axis), most, whole)
    place.view(output, place.tops[0], place.outputs[0])


def _best(place: LayerExport, x: str, axis: int, most: int, whole: bool) -> str:
    """Return the places of several, their values, or both, one above the other."""
    bounds = [place.whole([one]) for one in (-1, np.iinfo(np.int64).min, axis, -1)]
    backwards = place.put("Slice", [x, *bounds])
    values, indices = f"{backwards}/values", f"{backwards}/places"
    place.put("TopK", [backwards, place.whole([most])], [values, indices], axis=axis)
    if place.values["out_max_val"] and not whole:
        return values
    last = place.whole(int(place.values["channels"]) - 1)
    places = place.put("Cast", [place.put("Sub", [last, indices])], to=1)
    both = place.values["out_max_val"]
    return place.put("Concat", [places, values], axis=1) if both else places


@writes("Eltwise")
def eltwise(place: LayerExport) -> None:
    operation = place.values["operation"]
    parts = list(place.inputs)
    if operation == "sum":
        coefficients = [float(one) for one in place.values["coeff"]]
        parts = [
            name if factor == 1 else place.put("Mul", [name, place.constant(factor)])
            for name, factor in zip(parts, coefficients, strict=True)
        ]
    op = {"sum": "Add", "prod": "Mul", "max": "Max"}[operation]
    total = parts[0]
    for name in parts[1:-1]:
        total = place.put(op, [total, name])
    place.last(op, [total, parts[-1]])


@writes("MatMul")
def matmul(place: LayerExport) -> None:
    sides = []
    for name, shape, turned in zip(
        place.inputs,
        place.shapes,
        (place.values["transpose_a"], place.values["transpose_b"]),
        strict=True,
    ):
        axes = len(shape)
        order = [*range(axes - 2), axes - 1, axes - 2]
        sides.append(place.put("Transpose", [name], perm=order) if turned else name)
    place.last("MatMul", sides)


@writes("Where")
def where(place: LayerExport) -> None:
    condition = place.put("Cast", [place.inputs[0]], to=9)
    place.last("Where", [condition, *place.inputs[1:]])


_REDUCTIONS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "asum": "ReduceL1",
    "sumsq": "ReduceSumSquare",
}


@writes("Reduction")
def reduction(place: LayerExport) -> None:
    axis, axes = int(place.values["axis"]), len(place.shapes[0])
    op = _REDUCTIONS[place.values["operation"]]
    output = place.reduce(op, place.inputs[0], list(range(axis, axes)), keep=False)
    coefficient = float(place.values["coeff"])
    if coefficient == 1:
        place.last("Identity", [output])
    else:
        place.last("Mul", [output, place.constant(coefficient)])
