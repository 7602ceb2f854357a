"""Pooling and SPP, with Caffe's windows: rounded up, and averages over the padding as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sparknet.torch.random import Draw
from sparknet.torch.translations.table import Tensors, Tops, Translatable, translates

_TINY = 1.1754943508222875e-38

Pair = tuple[int, int]


def _least(x: Tensor) -> float:
    """Return what an empty window has for a maximum: -FLT_MAX."""
    return float(torch.finfo(x.dtype).min)


@translates("Pooling", narrow=True)
def pooling(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    size = layer.top_shapes[0][2:]
    draw = layer.draw() if options["method"] == "stochastic" and layer.train else None
    return pooled(layer, bottoms[0], options, (size[0], size[1]), draw)


@translates("SPP")
def spp(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, levels, number = bottoms[0], [], 0
    method = layer.options["method"]
    draw = layer.draw() if method == "stochastic" and layer.train else None
    for level in layer.options["levels"]:
        size = level["output"]
        levels.append(pooled(layer, x, level, size, draw, number)[0])
        number += x.shape[0] * x.shape[1] * size[0] * size[1]
    if len(levels) == 1:
        return levels[0]
    return torch.cat([one.flatten(1) for one in levels], 1)


def pooled(
    layer: Translatable,
    x: Tensor,
    options: Mapping[str, Any],
    size: Pair,
    draw: Draw | None,
    number: int = 0,
) -> tuple[Tensor, ...]:
    method = options["method"]
    if x.shape[0] * x.shape[1] * size[0] * size[1] == 0 or x.numel() == 0:
        y = x.new_zeros(*x.shape[:2], *size) + x.sum() * 0
        return (y, y) if len(layer.top_shapes) > 1 else (y,)
    if max(_reach(options, size)) > 4 * max(x.shape[2:]) + 1024 and len(layer.top_shapes) == 1:
        return (_by_slices(x, options, size),)
    if method == "max":
        return _largest(layer, x, options, size)
    if method == "ave":
        return (_mean(x, options, size),)
    numbers = x.float() if x.dtype == torch.bfloat16 else x
    return (_picked(layer, numbers, options, size, draw, number).to(x.dtype),)


def _by_slices(x: Tensor, options: Mapping[str, Any], size: Pair) -> Tensor:
    """Pool window by window, where the padding would fill a memory."""
    spans = [
        [(max(o * stride - pad, 0), min(o * stride - pad + kernel, length)) for o in range(outputs)]
        for outputs, stride, pad, kernel, length in zip(
            size, options["stride"], options["pad"], options["kernel"], x.shape[2:], strict=True
        )
    ]
    columns = []
    for top, bottom in spans[0]:
        for start, right in spans[1]:
            part = x[:, :, top:bottom, start:right].flatten(2)
            if options["method"] == "max":
                columns.append(part.max(2)[0] if part.shape[2] else part.sum(2) + _least(x))
            else:
                columns.append(part.sum(2))
    y = torch.stack(columns, 2).reshape(*x.shape[:2], *size)
    return y / _areas(x, options, size) if options["method"] == "ave" else y


def _reach(options: Mapping[str, Any], size: Pair) -> Pair:
    """Return how far the windows reach into the padded image."""
    ends = [
        (outputs - 1) * stride + kernel
        for outputs, stride, kernel in zip(size, options["stride"], options["kernel"], strict=True)
    ]
    return (ends[0], ends[1])


def _padded(x: Tensor, options: Mapping[str, Any], size: Pair, value: float) -> Tensor:
    """Return the image with its padding, as far as windows reach: no more, no less."""
    high, wide = _reach(options, size)
    up, side = options["pad"]
    below, right = high - up - x.shape[2], wide - side - x.shape[3]
    if (up, below, side, right) == (0, 0, 0, 0):
        return x
    return functional.pad(x, (side, right, up, below), value=value)


def _fits(x: Tensor, options: Mapping[str, Any], size: Pair) -> bool:
    """Return whether no window reaches past the padding: then torch's windows are Caffe's."""
    return all(
        reach <= length + 2 * pad
        for reach, length, pad in zip(
            _reach(options, size), x.shape[2:], options["pad"], strict=True
        )
    ) and all(
        2 * pad <= kernel for pad, kernel in zip(options["pad"], options["kernel"], strict=True)
    )


def _rounded_up(x: Tensor, options: Mapping[str, Any]) -> Pair | None:
    """Return PyTorch's number of windows that may pass the padding; None if it takes none."""
    sizes = []
    for length, kernel, stride, pad in zip(
        map(int, x.shape[2:]), options["kernel"], options["stride"], options["pad"], strict=True
    ):
        if 2 * pad > kernel or kernel > length + 2 * pad:
            return None
        outputs = -(-(length + 2 * pad - kernel) // stride) + 1
        sizes.append(outputs - ((outputs - 1) * stride >= length + pad))
    return sizes[0], sizes[1]


def _largest(
    layer: Translatable, x: Tensor, options: Mapping[str, Any], size: Pair
) -> tuple[Tensor, ...]:
    kernel, stride, pad = options["kernel"], options["stride"], options["pad"]
    wants_mask = len(layer.top_shapes) > 1
    if not wants_mask and _rounded_up(x, options) == size:
        return (functional.max_pool2d(x, kernel, stride, pad, ceil_mode=True),)
    padded = _padded(x, options, size, _least(x))
    y, places = functional.max_pool2d(padded, kernel, stride, return_indices=True)
    if not wants_mask:
        return (y,)
    rows = torch.div(places, padded.shape[3], rounding_mode="floor") - pad[0]
    columns = places % padded.shape[3] - pad[1]
    inside = (rows >= 0) & (rows < x.shape[2]) & (columns >= 0) & (columns < x.shape[3])
    mask = torch.where(inside, rows * x.shape[3] + columns, -1)
    return (y, mask.to(torch.float32))


def _divisors(
    device: torch.device, length: int, outputs: int, kernel: int, stride: int, pad: int
) -> Tensor:
    """Return the part of each window that lies in the image or its padding, up to its far edge."""
    begin = torch.arange(outputs, device=device) * stride - pad
    return torch.clamp(begin + kernel, max=length + pad) - begin


def _areas(x: Tensor, options: Mapping[str, Any], size: Pair) -> Tensor:
    kernel, stride, pad = options["kernel"], options["stride"], options["pad"]
    rows, columns = (
        _divisors(x.device, x.shape[2 + i], size[i], kernel[i], stride[i], pad[i]) for i in range(2)
    )
    return (rows[:, None] * columns).to(x)


def _mean(x: Tensor, options: Mapping[str, Any], size: Pair) -> Tensor:
    kernel, stride, pad = options["kernel"], options["stride"], options["pad"]
    whole = tuple(map(int, x.shape[2:]))
    if size == (1, 1) and (tuple(kernel), tuple(pad)) == (whole, (0, 0)):
        return x.mean((2, 3), keepdim=True)  # a GPU's windows are slow where there is but one
    if _fits(x, options, size):
        y = functional.avg_pool2d(x, kernel, stride, pad)
        return y[:, :, : size[0], : size[1]] if tuple(y.shape[2:]) != size else y
    means = functional.avg_pool2d(_padded(x, options, size, 0.0), kernel, stride)
    return means * (kernel[0] * kernel[1] / _areas(x, options, size))


def _picked(
    layer: Translatable,
    x: Tensor,
    options: Mapping[str, Any],
    size: Pair,
    draw: Draw | None,
    number: int,
) -> Tensor:
    """STOCHASTIC: a value with a probability in proportion to it, or the mean of that."""
    kernel, stride = options["kernel"], options["stride"]
    marks = _padded(torch.ones_like(x[:1, :1]), options, size, 0.0)
    windows, inside = (
        one.unfold(2, kernel[0], stride[0]).unfold(3, kernel[1], stride[1]).flatten(4)
        for one in (_padded(x, options, size, 0.0), marks)
    )
    if draw is None:
        return (windows * windows).sum(4) / (windows.sum(4) + _TINY)
    sums = windows.detach().double().cumsum(4)
    goals = draw.uniform(number + sums[..., 0].numel(), x.device)[number:]
    goal = sums[..., -1:] * goals.double().reshape(*sums.shape[:-1], 1)
    picks = (sums > goal) & (inside > 0)
    first = picks.to(torch.int8).argmax(4, keepdim=True)
    y = windows.gather(4, first).squeeze(4)
    return torch.where(sums[..., -1].isnan(), torch.full_like(y, torch.nan), y)
