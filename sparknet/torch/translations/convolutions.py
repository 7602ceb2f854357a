"""Convolutions, InnerProduct, MatMul and Embed."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sparknet.torch.translations.table import (
    Tensors,
    Tops,
    Translatable,
    aligned,
    matrix_product,
    translates,
    truncate,
)

_CONVOLVE = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_SPREAD = {
    1: functional.conv_transpose1d,
    2: functional.conv_transpose2d,
    3: functional.conv_transpose3d,
}


def _narrow(layer: Translatable, *values: Tensor | None) -> list[Tensor | None]:
    return [None if one is None else aligned(_laid(layer, one.to(layer.product))) for one in values]


def _wants_channels_last(layer: Translatable, x: Tensor) -> bool:
    """Return whether the channels of a pixel lie side by side, as a GPU multiplies them."""
    return bool(x.is_cuda)


def _laid(layer: Translatable, x: Tensor) -> Tensor:
    """Lay images channels last; blobs of other layers keep this order."""
    if x.ndim != 4 or not _wants_channels_last(layer, x):
        return x
    return x.contiguous(memory_format=torch.channels_last)


def _is_plain(layer: Translatable) -> bool:
    """Return whether torch has it: one to three axes, all of them positive."""
    return len(layer.options["kernel"]) in _CONVOLVE


@translates(
    *("Convolution", "Convolution3D", "ConvolutionDepthwise", "DepthwiseConvolution"),
    narrow=True,
    multiplies=True,
)
def convolution(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return tuple(_over_images(layer, x, params, _convolved) for x in bottoms)


def _over_images(
    layer: Translatable,
    x: Tensor,
    params: Tensors,
    compute: Callable[[Translatable, Tensor, Tensor, Tensor | None], Tensor],
) -> Tensor:
    """Take the axes before the channels as so many images."""
    axis = layer.options["axis"]
    outer = x.shape[:axis]
    x = x if axis == 1 else x.reshape(prod(outer), *x.shape[axis:])
    if x.numel() == 0 or 0 in layer.top_shapes[0]:
        return _nothing(layer, x, params)
    y = compute(layer, x, params[0], params[1] if layer.options["bias_term"] else None)
    return y if len(outer) == 1 else y.reshape(*outer, *y.shape[1:])


def _convolved(layer: Translatable, x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    x = _reached(layer, x)
    if not _is_plain(layer):
        return _by_patches(layer, x.to(weights.dtype), weights, bias)
    return _by_torch(layer, _CONVOLVE, x, weights, bias)


def _by_torch(
    layer: Translatable, functions: Any, x: Tensor, weights: Tensor, bias: Tensor | None
) -> Tensor:
    options = layer.options
    y: Tensor = functions[len(options["kernel"])](
        *_narrow(layer, x, weights, bias),
        stride=options["stride"],
        padding=options["pad"],
        dilation=options["dilation"],
        groups=options["group"],
    )
    return y


def _nothing(layer: Translatable, x: Tensor, params: Tensors) -> Tensor:
    """Return a top without values, or one that no value reaches."""
    y = x.new_zeros(layer.top_shapes[0])
    for one in (x, *params):
        y = y + one.sum() * 0
    return y


def _reached(layer: Translatable, x: Tensor) -> Tensor:
    """Zeros behind an image that is smaller than the window: Caffe has one output there."""
    options = layer.options
    lacks = [
        max(0, dilation * (kernel - 1) + 1 - size - 2 * pad)
        for size, kernel, pad, dilation in zip(
            x.shape[2:], options["kernel"], options["pad"], options["dilation"], strict=True
        )
    ]
    if not any(lacks):
        return x
    return functional.pad(x, [pad for lack in reversed(lacks) for pad in (0, lack)])


def _windows(layer: Translatable, x: Tensor) -> Tensor:
    """x (N, C, sizes) as (N, C, kernel, outputs), by one axis after the other."""
    options = layer.options
    axes = len(options["kernel"])
    pads = [pad for pad in reversed(options["pad"]) for _ in range(2)]
    x = functional.pad(x, pads)
    for number in range(axes):
        kernel, stride = options["kernel"][number], options["stride"][number]
        dilation = options["dilation"][number]
        axis = 2 + number
        reach = dilation * (kernel - 1) + 1
        x = x.unfold(axis, reach, stride)[..., ::dilation]
    kernels = range(2 + axes, 2 + 2 * axes)
    return x.permute(0, 1, *kernels, *range(2, 2 + axes))


def _by_patches(layer: Translatable, x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    group = layer.options["group"]
    axes = len(layer.options["kernel"])
    windows = _windows(layer, x)
    sizes = windows.shape[2 + axes :]
    windows = windows.reshape(x.shape[0], group, -1, prod(sizes))
    y = weights.reshape(group, weights.shape[0] // group, -1) @ windows
    y = y.reshape(x.shape[0], weights.shape[0], *sizes)
    return y if bias is None else y + bias.reshape(-1, *(1,) * axes)


@translates("Im2col")
def im2col(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x = bottoms[0]
    shape = layer.top_shapes[0]
    if 0 in shape or x.numel() == 0:
        return _nothing(layer, x, ())
    x = _reached(
        layer, x.flatten(0, layer.options["axis"] - 1) if layer.options["axis"] else x[None]
    )
    return _windows(layer, x).reshape(shape)


@translates("Deconvolution", "Deconvolution3D", narrow=True, multiplies=True)
def deconvolution(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return tuple(_over_images(layer, x, params, _spread) for x in bottoms)


def _spread(layer: Translatable, x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    axes = len(layer.options["kernel"])
    if axes in _SPREAD:
        return _by_torch(layer, _SPREAD, x, weights, bias)
    y = _by_gradient(layer, x.to(weights.dtype), weights)
    return y if bias is None else y + bias.reshape(-1, *(1,) * axes)


def _by_gradient(layer: Translatable, x: Tensor, weights: Tensor) -> Tensor:
    """Over more axes than torch has: what each value adds to the places of its window."""
    options = layer.options
    group, axes = options["group"], len(options["kernel"])
    top = layer.top_shapes[0][options["axis"] :]
    rows = weights.reshape(group, weights.shape[0] // group, -1).transpose(1, 2)
    patches = rows @ x.reshape(x.shape[0], group, x.shape[1] // group, -1)
    patches = patches.reshape(x.shape[0], top[0], *options["kernel"], *x.shape[2:])
    padded = [size + 2 * pad for size, pad in zip(top[1:], options["pad"], strict=True)]
    y = x.new_zeros(x.shape[0], top[0], prod(padded))
    places = torch.zeros([1] * (2 * axes), dtype=torch.int64, device=x.device)
    for number in range(axes):
        steps = torch.arange(options["kernel"][number], device=x.device)
        steps = steps * options["dilation"][number]
        starts = torch.arange(x.shape[2 + number], device=x.device) * options["stride"][number]
        shape = [1] * (2 * axes)
        shape[number], shape[axes + number] = len(steps), len(starts)
        places = places * padded[number] + (steps[:, None] + starts).reshape(shape)
    flat = places.reshape(-1).expand(x.shape[0], top[0], -1)
    y = y.scatter_add(2, flat, patches.reshape(x.shape[0], top[0], -1))
    y = y.reshape(x.shape[0], top[0], *padded)
    for number, pad in enumerate(options["pad"]):
        y = y.narrow(2 + number, pad, top[1 + number])
    return y


@translates("InnerProduct", narrow=True, multiplies=True)
def inner_product(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    x, weights = bottoms[0], params[0]
    outer = x.shape[: options["axis"]]
    x = x.flatten(1) if len(outer) == 1 else x.reshape(prod(outer), prod(x.shape[len(outer) :]))
    if options["normalize"]:
        with torch.no_grad():
            norms = weights.norm(dim=1, keepdim=True)
            weights.div_(torch.where(norms > 0, norms, torch.ones_like(norms)))
    weights = weights if options["transpose"] else weights.t()
    bias = params[1] if options["bias_term"] else None
    if bias is None:
        y = matrix_product(layer, x, weights)
    else:
        y = torch.addmm(*(aligned(one.to(layer.product)) for one in (bias, x, weights)))
    return y if len(outer) == 1 else y.reshape(*outer, options["num_output"])


@translates("MatMul", narrow=True)
def matmul(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    a, b = bottoms
    a = a.transpose(-1, -2) if layer.options["transpose_a"] else a
    b = b.transpose(-1, -2) if layer.options["transpose_b"] else b
    return matrix_product(layer, a, b)


@translates("Embed", without_gradient={0: "indices"})
def embed(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    rows = layer.options["input_dim"]
    labels = bottoms[0]
    numbers = truncate(labels)
    fine = (numbers >= 0) & (numbers < rows)
    layer.check(
        fine.all(),
        lambda: f"index {labels[~fine][0]:g} is out of range: there are {rows} rows",
    )
    y = functional.embedding(numbers.clamp(0, rows - 1).to(torch.int64), params[0])
    return y + params[1] if layer.options["bias_term"] else y
