"""Layers that move values, or choose among them by place."""

from __future__ import annotations

from itertools import pairwise

import torch

from sparknet.torch.translations.table import Tensors, Tops, Translatable, cut, translates


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


@translates("Permute", narrow=True)
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


@translates("ShuffleChannel", narrow=True)
def shuffle_channel(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, group = bottoms[0].reshape(layer.top_shapes[0]), layer.options["group"]
    parts = x.reshape(x.shape[0], group, x.shape[1] // group, *x.shape[2:])
    return parts.transpose(1, 2).reshape(x.shape)
