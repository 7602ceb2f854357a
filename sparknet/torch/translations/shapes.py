"""Layers that move values, or choose among them by place."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import torch

from sparknet.torch.translations.table import (
    Tensors,
    Tops,
    Translatable,
    cut,
    on_device,
    translates,
)


@translates("Concat", narrow=True)
def concat(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return torch.cat(tuple(bottoms), layer.options["axis"])


@translates("Slice", narrow=True)
def slices(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    axis, bounds = layer.options["axis"], layer.options["bounds"]
    return tuple(bottoms[0].narrow(axis, begin, end - begin) for begin, end in pairwise(bounds))


@translates("Crop", narrow=True)
def crop(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    y = bottoms[0]
    for axis, (offset, size) in enumerate(
        zip(layer.options["offset"], layer.top_shapes[0], strict=False)
    ):
        y = y.narrow(axis, offset, size)
    return y


@translates("Tile", narrow=True)
def tile(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    times = [1] * bottoms[0].dim()
    times[layer.options["axis"]] = layer.options["tiles"]
    return bottoms[0].repeat(times)


@translates("Permute", "Transpose", narrow=True)
def permute(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return bottoms[0].permute(layer.options["order"])


@translates("Parameter")
def parameter(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return params[0] + 0


@translates("Silence")
def silence(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return ()


@translates("BatchReindex", without_gradient={1: "indices"})
def batch_reindex(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, given = bottoms
    numbers, count = cut(given), layer.options["num"]
    fine = (numbers >= 0) & (numbers < count)
    layer.check(
        fine.all(),
        lambda: f"index {given[~fine][0]:g} is out of range: there are {count} items",
    )
    if count == 0:
        return x.new_zeros(layer.top_shapes[0])
    return x.index_select(0, numbers.clamp(0, count - 1).to(torch.int64))


@translates("Gather", narrow=True)
def gather(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, axis, places = bottoms[0], layer.options["axis"], layer.options["index"]
    if places == tuple(range(places[0], places[0] + len(places))):
        return x.narrow(axis, places[0], len(places))
    return x.index_select(axis, on_device(layer, places, x, torch.int64))


@translates("BatchGather", without_gradient={1: "places"}, narrow=True)
def batch_gather(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, given = bottoms
    axis = layer.options["axis"]
    many, outer = x.shape[axis], prod(x.shape[:axis])
    places = given.to(torch.promote_types(given.dtype, torch.float32))
    numbers = torch.where(places < 0, places + many, places)
    fine = (numbers > -1) & (cut(numbers) < many)
    layer.check(
        fine.all(),
        lambda: f"place {given[~fine][0]:g} is out of range for an axis of {many}",
    )
    shape = layer.top_shapes[0]
    if prod(shape) == 0:
        return x.new_zeros(shape) + x.sum() * 0
    rows = cut(numbers).nan_to_num(0).clamp(0, many - 1).to(torch.int64).reshape(outer, -1, 1)
    each = x.reshape(outer, many, -1)
    return each.gather(1, rows.expand(-1, -1, each.shape[2])).reshape(shape)


@translates("Reverse", narrow=True)
def reverse(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    sizes = [layer.options[name] for name in ("outer", "many", "inner")]
    return bottoms[0].reshape(sizes).flip(1).reshape(bottoms[0].shape)


@translates("Flip", narrow=True)
def flip(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    axes = ((2, "flip_height"), (3, "flip_width"))
    return bottoms[0].flip([axis for axis, name in axes if layer.options[name]])


@translates("SizedLike", narrow=True)
def sized_like(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, shape = bottoms[0], layer.top_shapes[0]
    if layer.options["reshape"]:
        return x.reshape(shape)
    for axis, size in enumerate(shape[len(shape) - x.dim() :]):
        if x.shape[axis] > max(size, 1) or size == 0:
            x = x.narrow(axis, 0, size)
    return x.expand(shape).contiguous()


@translates("ShuffleChannel", narrow=True)
def shuffle_channel(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, group = bottoms[0].reshape(layer.top_shapes[0]), layer.options["group"]
    parts = x.reshape(x.shape[0], group, x.shape[1] // group, *x.shape[2:])
    return parts.transpose(1, 2).reshape(x.shape)
