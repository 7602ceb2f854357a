"""BatchNorm, LRN, MVN and Softmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sparknet.torch.translations.table import Tensors, Tops, Translatable, applied, translates


def _channels(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(-1, *(1,) * (x.dim() - 2))


@translates("BatchNorm", writes_params=True)
def batch_norm(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """The blobs are running sums, and the third counts what went in."""
    x, options = bottoms[0], layer.options
    mean, variance, count = (one.detach() for one in params[:3])
    factor, shift = (params[3], params[4]) if len(params) > 3 else (None, None)
    if x.numel() == 0:
        return x + 0
    if options["use_global_stats"]:
        share = torch.where(count == 0, torch.zeros_like(count), 1 / count)
        return _affine(x, mean * share, variance * share, options["eps"], factor, shift)
    each = x.numel() // x.shape[1]
    now, spread = torch.zeros_like(mean), torch.ones_like(variance)
    y = torch.batch_norm(
        x, factor, shift, now, spread, True, 1.0, options["eps"], torch.backends.cudnn.enabled
    )
    if each == 1:
        spread = torch.zeros_like(spread)
    with torch.no_grad():
        fraction = options["moving_average_fraction"]
        mean.mul_(fraction).add_(now)
        variance.mul_(fraction).add_(spread)
        count.mul_(fraction).add_(1)
    return y


def _affine(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    factor: Tensor | None,
    shift: Tensor | None,
) -> Tensor:
    by = torch.rsqrt(variance + eps)
    y = (x - _channels(mean, x)) * _channels(by, x)
    if factor is not None:
        y = y * _channels(factor, x)
    return y if shift is None else y + _channels(shift, x)


@translates("LRN")
def lrn(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    x, size, beta = bottoms[0], options["local_size"], options["beta"]
    if x.numel() == 0:
        return x + 0
    squares, half = x * x, (size - 1) // 2
    # Means, as exporters to ONNX ignore avg_pool2d's divisor_override.
    if options["norm_region"] == "across_channels":
        planes = functional.pad(squares.flatten(2).unsqueeze(1), (0, 0, half, half))
        means, k = functional.avg_pool2d(planes, (size, 1), 1), options["k"]
    else:
        means, k = functional.avg_pool2d(functional.pad(squares, (half,) * 4), size, 1), 1.0
    return x * (k + options["alpha"] * means.reshape(x.shape)).pow(-beta)


@translates("MVN")
def mvn(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """eps is added to the deviation."""
    options = layer.options
    shape = layer.top_shapes[0]
    x = bottoms[0].reshape(shape)
    if x.numel() == 0:
        return x + 0
    axes = (1, 2, 3) if options["across_channels"] else (2, 3)
    centred = x - x.mean(axes, keepdim=True)
    if not options["normalize_variance"]:
        return centred
    return applied(_Divided, centred, axes, options["eps"])


class _Divided(torch.autograd.Function):
    """Centred values divided by deviation + eps; Caffe's gradient takes that for the deviation
    itself (mvn_layer.cpp)."""

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


@translates("Softmax")
def softmax(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return torch.softmax(bottoms[0], layer.options["axis"])


@translates("LogSoftmax")
def log_softmax(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return torch.log_softmax(bottoms[0], layer.options["axis"])
