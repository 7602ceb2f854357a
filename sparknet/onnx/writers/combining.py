"""Layers of several blobs, products and reductions."""

from __future__ import annotations

from sparknet.onnx.layer_export import LayerExport, writes


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
    made = parts[0]
    for name in parts[1:-1]:
        made = place.put(op, [made, name])
    place.last(op, [made, parts[-1]])


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


@writes("Div")
def quotient(place: LayerExport) -> None:
    place.last("Div", place.inputs)


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
    made = place.reduce(op, place.inputs[0], list(range(axis, axes)), keep=False)
    coefficient = float(place.values["coeff"])
    if coefficient == 1:
        place.last("Identity", [made])
    else:
        place.last("Mul", [made, place.constant(coefficient)])
