"""Layers that move values, choose among them by place, or resize images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sparknet.torch.translations.table import (
    Tensors,
    Tops,
    Translatable,
    applied,
    on_device,
    translates,
    truncate,
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
    x, places = bottoms
    numbers, count = truncate(places), layer.options["num"]
    fine = (numbers >= 0) & (numbers < count)
    layer.check(
        fine.all(),
        lambda: f"index {places[~fine][0]:g} is out of range: there are {count} items",
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
    x, indices = bottoms
    axis = layer.options["axis"]
    many, outer = x.shape[axis], prod(x.shape[:axis])
    places = indices.to(torch.promote_types(indices.dtype, torch.float32))
    numbers = torch.where(places < 0, places + many, places)
    fine = (numbers > -1) & (truncate(numbers) < many)
    layer.check(
        fine.all(),
        lambda: f"place {indices[~fine][0]:g} is out of range for an axis of {many}",
    )
    shape = layer.top_shapes[0]
    if prod(shape) == 0:
        return x.new_zeros(shape) + x.sum() * 0
    rows = truncate(numbers).nan_to_num(0).clamp(0, many - 1).to(torch.int64).reshape(outer, -1, 1)
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


Mixture = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Of each new line the old ones that it is made of, and their shares: two arrays (lines, ways)."""


def _mixed(layer: Translatable, x: Tensor, axis: int, mixture: Mixture) -> Tensor:
    """Along one axis the sums of old lines by their shares."""
    entry = layer.state.get(f"lines {axis}")
    if entry is None or entry[0] is not mixture or entry[1].device != x.device:
        lines, shares = mixture
        on = torch.as_tensor(lines.T.copy(), device=x.device), torch.as_tensor(shares.T.copy())
        entry = layer.state[f"lines {axis}"] = (mixture, on[0], on[1].to(x.device))
    spread = (-1, *(1,) * (x.dim() - axis - 1))
    if len(entry[1]) == 1:
        return x.index_select(axis, entry[1][0])
    parts = [
        x.index_select(axis, lines) * shares.to(x.dtype).reshape(spread)
        for lines, shares in zip(entry[1], entry[2], strict=True)
    ]
    return torch.stack(parts).sum(0) if len(parts) > 2 else parts[0] + parts[1]


def _resized(
    layer: Translatable, x: Tensor, make: Callable[[int], Mixture], scales: Any = None
) -> Tensor:
    """Return images of the top's size; the mixtures of both axes are made once for these sizes."""
    key = (tuple(x.shape), tuple(layer.top_shapes[0]), scales)
    entry = layer.state.get("mixtures")
    if entry is None or entry[0] != key:
        entry = layer.state["mixtures"] = (key, [make(axis) for axis in (2, 3)])
    high, wide = entry[1]
    return _mixed(layer, _mixed(layer, x, 2, high), 3, wide)


def _linear(places: np.ndarray[Any, Any], many: int) -> Mixture:
    places = np.clip(places, 0, many - 1)
    low = np.floor(places)
    lines = np.minimum(np.stack((low, low + 1), 1), many - 1).astype(np.int64)
    return lines, np.stack((1 - (places - low), places - low), 1).astype(np.float32)


def _cubic(places: np.ndarray[Any, Any], many: int, a: float, exclude: bool) -> Mixture:
    """Keys' kernel (1981)."""
    low = np.floor(places)
    lines = low[:, None] + np.arange(-1, 3)
    d = np.abs(places[:, None] - lines)
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    shares = np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, far)
    inside = np.clip(lines, 0, many - 1)
    if exclude:
        shares = np.where(lines == inside, shares, 0)
        total = shares.sum(1, keepdims=True)
        shares = np.where(total != 0, shares / np.where(total == 0, 1, total), shares)
    return inside.astype(np.int64), shares.astype(np.float32)


_ROUNDED: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
}


def _axis(options: Mapping[str, Any], before: int, after: int, scale: float) -> Mixture:
    """Return the lines of one axis by the rules of ONNX's Resize."""
    at, places = np.arange(after, dtype=np.float64), options["coordinates"]
    if places == "asymmetric":
        at = at / scale
    elif places == "align_corners":
        at = at * (before - 1) / (after - 1) if after > 1 else at * 0
    elif places == "pytorch_half_pixel" and after <= 1:
        at = at * 0
    else:
        middle = 0.0
        if places == "half_pixel_symmetric":
            middle = before / 2 * (1 - after / (scale * before))
        at = middle + (at + 0.5) / scale - 0.5
    if options["mode"] == "nearest":
        line = _ROUNDED[options["nearest_mode"]](at)
        line = np.clip(line, 0, before - 1).astype(np.int64)[:, None]
        return line, np.ones(line.shape, np.float32)
    if options["mode"] == "linear":
        return _linear(at, before)
    return _cubic(at, before, options["cubic_coeff_a"], options["exclude_outside"])


@translates("Resize")
def resize(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, options, shape = bottoms[0], layer.options, layer.top_shapes[0]
    if x.numel() == 0:
        return x.new_zeros(shape)
    scales = options["scales"]
    return _resized(
        layer, x, lambda axis: _axis(options, x.shape[axis], shape[axis], scales[axis - 2]), scales
    )


@translates("Interp")
def interp(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """Resize; corners stay corners (interp_layer.cpp of DeepLab and PSPNet)."""
    shape, options = layer.top_shapes[0], layer.options
    x = bottoms[0].reshape(*bottoms[0].shape, *(1,) * (4 - bottoms[0].dim()))
    begin, end = -options["pad_beg"], -options["pad_end"]
    x = x[:, :, begin : x.shape[2] - end, begin : x.shape[3] - end]
    if x.shape[2:] == shape[2:]:
        return x + 0
    if x.numel() == 0:
        return x.new_zeros(shape) + x.sum()
    return _resized(layer, x, lambda axis: _corners(x.shape[axis], shape[axis]))


def _corners(before: int, after: int) -> Mixture:
    """Find places in float32, as Caffe does."""
    ratio = np.float32(before - 1) / np.float32(after - 1) if after > 1 else np.float32(0)
    return _linear(ratio * np.arange(after, dtype=np.float32), before)


@translates("Upsample")
def upsample(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, shape = bottoms[0], layer.top_shapes[0]
    if layer.options["method"] == "unpool":
        return _unpooled(layer, x, bottoms[1], shape)
    by = layer.options["scale"]
    spread = x[:, :, :, None, :, None].expand(-1, -1, -1, by, -1, by)
    return spread.reshape(shape)


def _unpooled(layer: Translatable, x: Tensor, mask: Tensor, shape: Sequence[int]) -> Tensor:
    area = shape[2] * shape[3]
    fine = (mask > -1) & (truncate(mask) < area)
    layer.check(
        fine.all(),
        lambda: f"the mask's {mask[~fine][0]:g} is out of range: an output image has {area} values",
    )
    places = truncate(mask).nan_to_num(0).clamp(0, max(area - 1, 0)).to(torch.int64).flatten(2)
    unpooled: Tensor = applied(_PutBack, x.flatten(2), places, area)
    return unpooled.reshape(shape)


class _PutBack(torch.autograd.Function):
    """Of two values for one place the later stays; both have its gradient (upsample_layer.cpp)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, area: int) -> Tensor:
        ctx.save_for_backward(places)
        numbers = torch.arange(x.shape[2], device=x.device).expand(places.shape)
        later = places.new_full((*places.shape[:2], area), -1)
        later = later.scatter_reduce(2, places, numbers, "amax")
        if x.shape[2] == 0:
            return x.new_zeros(later.shape)
        values = x.gather(2, later.clamp(min=0))
        return torch.where(later < 0, torch.zeros_like(values), values)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return given.gather(2, places), None, None


_FAR = 1e5
"""Beyond every image; numbers of pixels up to there fit 32 bits."""


@translates("GridSample")
def grid_sample(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    image, grid = bottoms
    if prod(layer.top_shapes[0]) == 0 or image.numel() == 0:
        return image.new_zeros(layer.top_shapes[0])
    grid = grid.nan_to_num(-_FAR).clamp(-_FAR, _FAR)
    names = ("mode", "padding_mode", "align_corners")
    return functional.grid_sample(image, grid, *(layer.options[name] for name in names))
