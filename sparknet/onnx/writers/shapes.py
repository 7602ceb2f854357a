"""Layers that put values elsewhere."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sparknet.onnx.layer_export import LayerExport, writes


@writes("Flatten", "Reshape")
def view(place: LayerExport) -> None:
    top, shape = place.tops[0], place.shapes[0]
    options = place.options if place.node.type == "Reshape" else None
    if options is not None and options.axis == 0 and options.num_axes == -1:
        sizes = [int(one) for one in place.options.shape.dim]
        place.last("Reshape", [place.inputs[0], place.whole(sizes)])
        return
    if place.draft.dynamic and top[:1] != shape[:1] and top:
        sizes = list(top)
        sizes[0] = -1
        place.last("Reshape", [place.inputs[0], place.whole(sizes)])
        return
    place.view(place.inputs[0], top, place.outputs[0])


@writes("Permute", "Transpose")
def permute(place: LayerExport) -> None:
    place.last("Transpose", place.inputs, perm=[int(axis) for axis in place.values["order"]])


@writes("ShuffleChannel")
def shuffle(place: LayerExport) -> None:
    n, c, h, w = place.tops[0]
    group = int(place.values["group"])
    groups = place.view(place.inputs[0], (n, group, c // group, h, w))
    moved = place.put("Transpose", [groups], perm=[0, 2, 1, 3, 4])
    place.view(moved, (n, c, h, w), place.outputs[0])


@writes("Slice")
def slice_(place: LayerExport) -> None:
    axis, bounds = int(place.values["axis"]), place.values["bounds"]
    sizes = [int(end - start) for start, end in itertools.pairwise(bounds)]
    place.put("Split", [place.inputs[0], place.whole(sizes)], place.outputs, axis=axis)


@writes("Concat")
def concat(place: LayerExport) -> None:
    place.last("Concat", place.inputs, axis=int(place.values["axis"]))


@writes("Crop")
def crop(place: LayerExport) -> None:
    """To a size that is known, as inputs are of one size."""
    axis, offsets = int(place.values["axis"]), list(place.values["offset"])
    top = place.tops[0]
    axes = [one for one in range(axis, len(top)) if one or not place.draft.dynamic]
    starts = [int(offsets[one]) for one in axes]
    ends = [int(offsets[one]) + top[one] for one in axes]
    bounds = [place.whole(one) for one in (starts, ends, axes)]
    place.last("Slice", [place.inputs[0], *bounds])


@writes("Tile")
def tile(place: LayerExport) -> None:
    repeats = [1] * len(place.shapes[0])
    repeats[int(place.values["axis"])] = int(place.values["tiles"])
    place.last("Tile", [place.inputs[0], place.whole(repeats)])


@writes("Gather")
def gather(place: LayerExport) -> None:
    index = place.whole(list(place.options.index))
    place.last("Gather", [place.inputs[0], index], axis=int(place.values["axis"]))


@writes("CumSum")
def cum_sum(place: LayerExport) -> None:
    axis = place.whole(int(place.values["axis"]))
    attributes = {name: int(place.values[name]) for name in ("exclusive", "reverse")}
    place.last("CumSum", [place.inputs[0], axis], **attributes)


@writes("BatchGather")
def batch_gather(place: LayerExport) -> None:
    places = place.put("Cast", [place.inputs[1]], to=7)
    column = place.put("Unsqueeze", [places, place.whole([-1])])
    axis = int(place.values["axis"])
    place.last("GatherND", [place.inputs[0], column], batch_dims=axis)


@writes("SizedLike")
def sized_like(place: LayerExport) -> None:
    sizes = [_one_size(place, size) for size in place.options.size]
    shape = place.put("Concat", sizes, axis=0) if sizes else place.whole([])
    if place.values["reshape"]:
        place.last("Reshape", [place.inputs[0], shape])
        return
    x, bottom, top = place.inputs[0], place.shapes[0], place.tops[0]
    lead = len(top) - len(bottom)
    for axis, size in enumerate(bottom):
        if size != 1:
            bounds = [place.whole([0]), sizes[lead + axis], place.whole([axis])]
            x = place.put("Slice", [x, *bounds])
    place.last("Expand", [x, shape])


def _one_size(place: LayerExport, size: Any) -> str:
    if size.HasField("dim"):
        return place.whole([int(size.dim)])
    like = place.shapes[size.bottom]
    axis = place.node.layer.axis(size.axis, like)
    shape = place.put("Shape", [place.inputs[size.bottom]])
    return place.put("Slice", [shape, place.whole([axis]), place.whole([axis + 1])])


@writes("Flip")
def flip(place: LayerExport) -> None:
    x = place.inputs[0]
    for axis, on in ((3, place.options.flip_width), (2, place.options.flip_height)):
        if on:
            back = place.whole(list(range(place.shapes[0][axis]))[::-1])
            x = place.put("Gather", [x, back], axis=axis)
    place.last("Identity", [x])


@writes("Reverse")
def reverse(place: LayerExport) -> None:
    axis = place.node.layer.axis(place.options.axis, place.shapes[0])
    bounds = [place.whole([one]) for one in (-1, np.iinfo(np.int64).min, axis, -1)]
    place.last("Slice", [place.inputs[0], *bounds])


@writes("Embed")
def embed(place: LayerExport) -> None:
    places = place.before("places", "Cast", [place.inputs[0]], to=7)
    table = place.constant(place.arrays[0])
    if len(place.arrays) == 1:
        place.last("Gather", [table, places], axis=0)
        return
    rows = place.put("Gather", [table, places], axis=0)
    place.last("Add", [rows, place.constant(place.arrays[1])])


@writes("BatchReindex")
def batch_reindex(place: LayerExport) -> None:
    places = place.put("Cast", [place.inputs[1]], to=7)
    place.last("Gather", [place.inputs[0], places], axis=0)


@writes("Upsample")
def upsample(place: LayerExport) -> None:
    if place.values["method"] != "repeat":
        place.refuse("unpooling by a mask is not written")
    scale = float(place.values["scale"])
    _resize(
        place,
        [1, 1, scale, scale],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _resize(place: LayerExport, scales: list[float], **attributes: object) -> None:
    place.last("Resize", [place.inputs[0], "", place.constant(scales)], **attributes)


ALIGNED = "align_corners"


@writes("Interp")
def interp(place: LayerExport) -> None:
    values, x = place.values, place.inputs[0]
    shape, top = place.shapes[0], place.tops[0]
    before, after = -int(values["pad_beg"]), -int(values["pad_end"])
    high, wide = shape[2] - before - after, shape[3] - before - after
    if before or after:
        bounds = ([before] * 2, [before + high, before + wide], [2, 3])
        x = place.put("Slice", [x, *(place.whole(list(one)) for one in bounds)])
    scales = place.constant([1.0, 1.0, (top[2] + 1e-4) / high, (top[3] + 1e-4) / wide])
    place.last("Resize", [x, "", scales], mode="linear", coordinate_transformation_mode=ALIGNED)


@writes("Resize")
def resize(place: LayerExport) -> None:
    values, shape, top = place.values, place.shapes[0], place.tops[0]
    mode = values["mode"]
    attributes: dict[str, object] = {
        "mode": mode,
        "coordinate_transformation_mode": values["coordinates"],
    }
    if mode == "nearest":
        attributes["nearest_mode"] = values["nearest_mode"]
    if mode == "cubic":
        attributes["cubic_coeff_a"] = float(values["cubic_coeff_a"])
    if values["exclude_outside"]:
        attributes["exclude_outside"] = 1
    scales = [float(one) for one in values["scales"]]
    whole = [
        int(np.floor(size * s))
        for size, s in zip(shape[2:], np.asarray(scales, np.float32), strict=True)
    ]
    if whole != list(top[2:]):
        if place.draft.dynamic:
            scales = [(size + 1e-4) / own for size, own in zip(top[2:], shape[2:], strict=True)]
        else:
            place.last("Resize", [place.inputs[0], "", "", place.whole(top)], **attributes)
            return
    _resize(place, [1, 1, *scales], **attributes)


@writes("GridSample")
def grid_sample(place: LayerExport) -> None:
    if place.opset < 16:
        place.refuse("GridSample is an operator of opset 16 and later")
    values, mode = place.values, place.values["mode"]
    if place.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    place.last(
        "GridSample",
        place.inputs,
        mode=mode,
        padding_mode=values["padding_mode"],
        align_corners=int(values["align_corners"]),
    )


@writes("Parameter")
def parameter(place: LayerExport) -> None:
    place.last("Identity", [place.constant(place.arrays[0])])


@writes("DummyData")
def dummy_data(place: LayerExport) -> None:
    for filler, shape, output in zip(
        place.values["fillers"], place.tops, place.outputs, strict=False
    ):
        if filler.type != "constant":
            place.refuse(f"a {filler.type} filler makes other numbers each time")
        place.put("Identity", [place.constant(np.full(shape, filler.value))], output)


@writes("Reorg")
def reorg(place: LayerExport) -> None:
    """Darknet's order of values: one of the two sides counts the input's sizes as its own."""
    n, c, h, w = place.shapes[0]
    stride = int(place.values["stride"])
    few = c // stride**2
    if place.values["reverse"]:
        cells = place.view(place.inputs[0], (n, stride, stride, few, h, w))
        moved = place.put("Transpose", [cells], perm=[0, 3, 4, 1, 5, 2])
    else:
        cells = place.view(place.inputs[0], (n, few, h, stride, w, stride))
        moved = place.put("Transpose", [cells], perm=[0, 3, 5, 1, 2, 4])
    place.view(moved, place.tops[0], place.outputs[0])
