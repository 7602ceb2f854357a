"""Layers that map each value to one value."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from sparknet.torch.translations.table import Tensors, Tops, Translatable, cut, translates


@translates("ReLU", narrow=True)
def relu(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    slope = layer.options["negative_slope"]
    if slope == 0:
        return functional.relu(bottoms[0])
    if slope > 0:
        return functional.leaky_relu(bottoms[0], slope)
    return torch.where(bottoms[0] > 0, bottoms[0], slope * bottoms[0])


@translates("ReLU6", narrow=True)
def relu6(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return functional.relu6(bottoms[0])


@translates("PReLU")
def prelu(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, slope = bottoms[0], params[0]
    if not layer.options["channel_shared"]:
        slope = slope.reshape(-1, *(1,) * (x.dim() - 2))
    return functional.relu(x) + slope * x.clamp(max=0)  # Caffe: a slope of NaN spoils all values


@translates("ELU")
def elu(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, alpha = bottoms[0], layer.options["alpha"]
    return torch.where(x > 0, x, alpha * torch.expm1(x.clamp(max=0)))


@translates("Sigmoid")
def sigmoid(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return torch.sigmoid(bottoms[0])


@translates("TanH")
def tanh(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return torch.tanh(bottoms[0])


@translates("AbsVal")
def absval(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return bottoms[0].abs()


@translates("BNLL")
def bnll(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return functional.softplus(bottoms[0], threshold=50)


@translates("Power", narrow=True)
def power(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    exponent, scale, shift = options["power"], options["scale"], options["shift"]
    x = bottoms[0]
    if exponent != 1 and x.dtype == torch.bfloat16:
        x = x.float()
    if options["diff_scale"] == 0:
        return torch.full_like(x, shift).pow(exponent)
    base = x * scale if scale != 1 else x
    base = base + shift if shift else base
    if exponent == 1:
        return base + 0 if base is x else base
    return base.pow(exponent)


@translates("Exp")
def exp(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    return torch.exp(options["inner_scale"] * bottoms[0]) * options["outer_scale"]


@translates("Log")
def log(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    return torch.log(options["scale"] * bottoms[0] + options["shift"]) * options["base_scale"]


@translates("Clip", narrow=True)
def clip(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return bottoms[0].clamp(max=layer.options["max"]).clamp(min=layer.options["min"])


@translates("Threshold", no_gradient=True)
def threshold(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return (bottoms[0] > layer.options["threshold"]).to(bottoms[0].dtype)


@translates("Swish", narrow=True)
def swish(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, beta = bottoms[0], layer.options["beta"]
    return functional.silu(x) if beta == 1 else x * torch.sigmoid(beta * x)


@translates("HardSwish", narrow=True)
def hard_swish(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return functional.hardswish(bottoms[0])


@translates("GELU", narrow=True)
def gelu(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return functional.gelu(bottoms[0], approximate=layer.options["approximate"])


@translates("Mish", narrow=True)
def mish(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return functional.mish(bottoms[0])


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": cut,
    "sin": torch.sin,
    "cos": torch.cos,
}


@translates("Math")
def math(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return _FUNCTIONS[layer.options["function"]](bottoms[0])


@translates("Dropout", narrow=True)
def dropout(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, options = bottoms[0], layer.options
    if not options["train"]:
        return x * options["scale"] if options["scale"] != 1 else x
    bound = int(options["ratio"] * 2.0**40)
    kept: Tensor = layer.draw().top40(x.numel(), x.device) >= bound
    return x * (kept.reshape(x.shape).to(x.dtype) * options["scale"])


@translates("SpatialDropout", narrow=True)
def spatial_dropout(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, options = bottoms[0], layer.options
    if not options["train"]:
        return x * options["scale"] if options["scale"] != 1 else x
    planes = (*x.shape[:2], *(1,) * (x.dim() - 2))
    bound = int(options["ratio"] * 2.0**40)
    kept: Tensor = layer.draw().top40(planes[0] * planes[1], x.device) >= bound
    return x * (kept.reshape(planes).to(x.dtype) * options["scale"])
