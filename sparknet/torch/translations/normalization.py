"""BatchNorm, LRN, MVN and Softmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sparknet.torch.translations.table import (
    Tensors,
    Tops,
    Translatable,
    aligned,
    applied,
    translates,
    wide,
)


@translates("BatchNorm", writes_params=True, narrow=True)
def batch_norm(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """Keep running sums in the blobs; the third counts what went in."""
    x, options = bottoms[0], layer.options
    mean, variance, count = (one.detach() for one in params[:3])
    factor, shift, *_ = (*map(aligned, params[3:]), None, None)
    if x.numel() == 0:
        return x + 0
    if options["use_global_stats"]:
        share = (1 / count).nan_to_num(torch.nan, 0.0, 0.0)
        return _normed(x, factor, shift, mean * share, variance * share, False, options["eps"])
    each = x.numel() // x.shape[1]
    now, spread = mean.new_zeros(2, len(mean))
    y = _normed(x, factor, shift, now, spread, True, options["eps"])
    if each == 1:
        spread = now * 0  # which keeps NaN
    with torch.no_grad():
        fraction = options["moving_average_fraction"]
        if x.is_cuda:  # fewer kernels
            torch._foreach_mul_((mean, variance, count), fraction)
            torch._foreach_add_((mean, variance), (now, spread))
            count.add_(1)
        else:
            mean.mul_(fraction).add_(now)
            variance.mul_(fraction).add_(spread)
            count.mul_(fraction).add_(1)
    return y


def _normed(
    x: Tensor,
    factor: Tensor | None,
    shift: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    of_batch: bool,
    eps: float,
) -> Tensor:
    by_cudnn = torch.backends.cudnn.enabled
    return torch.batch_norm(x, factor, shift, mean, variance, of_batch, 1.0, eps, by_cudnn)


@translates("LRN")
def lrn(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    x, size, beta = bottoms[0], options["local_size"], options["beta"]
    if x.numel() == 0:
        return x + 0
    if options["norm_region"] == "across_channels":
        return applied(_Normed, x, size, options["alpha"], beta, options["k"])
    means = functional.avg_pool2d(x * x, size, 1, size // 2)
    return x * (1 + options["alpha"] * means).pow(-beta)


def _across(values: Tensor, size: int) -> Tensor:
    """Return means over neighbouring channels: ONNX's exporters ignore divisor_override."""
    if values.dim() == 4 and values.stride(1) == 1 < values.shape[1]:  # of a pixel side by side
        pixels = values.permute(0, 2, 3, 1).flatten(1, 2).unsqueeze(1)
        means = functional.avg_pool2d(pixels, (1, size), 1, (0, size // 2))
        return means.reshape(len(values), *values.shape[2:], -1).permute(0, 3, 1, 2)
    planes = values.flatten(2).unsqueeze(1)
    return functional.avg_pool2d(planes, (size, 1), 1, (size // 2, 0)).reshape(values.shape)


class _Normed(torch.autograd.Function):
    """LRN across channels, with a gradient of few passes (Caffe: lrn_layer.cpp)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
        scale = _across(x * x, size).mul_(alpha).add_(k)
        y: Tensor = scale.pow(-beta).mul_(x)
        ctx.numbers = size, alpha, beta
        ctx.save_for_backward(x, y, scale)
        return y

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        x, y, scale = ctx.saved_tensors
        size, alpha, beta = ctx.numbers
        shares = _across((given * y).div_(scale), size)
        gradient = scale.pow(-beta).mul_(given).addcmul_(x, shares, value=-2 * alpha * beta)
        return gradient, None, None, None, None


@translates("MVN")
def mvn(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """eps is added to the deviation."""
    options = layer.options
    shape = layer.top_shapes[0]
    x = bottoms[0].reshape(shape)
    if x.numel() == 0:
        return x + 0
    axes = (1, 2, 3) if options["across_channels"] else (2, 3)
    centred = x - x.mean(axes, keepdim=True, dtype=wide(x)).to(x.dtype)
    if not options["normalize_variance"]:
        return centred
    return applied(_Divided, centred, axes, options["eps"])


class _Divided(torch.autograd.Function):
    """Centred values over deviation + eps, with the gradient of mvn_layer.cpp."""

    @staticmethod
    def forward(ctx: Any, centred: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
        by = (centred * centred).mean(axes, keepdim=True).sqrt() + eps
        y: Tensor = centred / by
        ctx.axes = axes
        ctx.save_for_backward(y, by)
        return y

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, None, None]:
        y, by = ctx.saved_tensors
        tilt = (given * y).mean(ctx.axes, keepdim=True)
        return (given - tilt * y) / by, None, None


@translates("LayerNorm")
def layer_norm(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, options = bottoms[0], layer.options
    if x.numel() == 0:
        return x + 0
    return functional.layer_norm(x, x.shape[options["axis"] :], eps=options["eps"])


@translates("Normalize")
def normalize(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """Divided by the norm of each place's channels, or of the whole image."""
    x, options = bottoms[0], layer.options
    axes = tuple(range(1, x.dim())) if options["across_spatial"] else (1,)
    y = x / ((x * x).sum(axes, keepdim=True) + options["eps"]).sqrt()
    if not params:
        return y
    return y * (
        params[0] if options["channel_shared"] else params[0].reshape(-1, *(1,) * (x.dim() - 2))
    )


@translates("Softmax", narrow=True)
def softmax(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x = bottoms[0]
    return torch.softmax(x, layer.options["axis"], torch.promote_types(x.dtype, torch.float32))


@translates("LogSoftmax")
def log_softmax(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return torch.log_softmax(bottoms[0], layer.options["axis"])
