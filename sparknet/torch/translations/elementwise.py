"""Activations, Eltwise, Reduction, Scale, Bias, and what forks and ONNX add to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sparknet.torch.translations.table import (
    Tensors,
    Tops,
    Translatable,
    applied,
    translates,
    truncate,
    wide,
)


@translates("ReLU", narrow=True)
def relu(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    slope = layer.options["negative_slope"]
    if slope == 0:
        return functional.relu(bottoms[0])
    if slope > 0:
        return functional.leaky_relu(bottoms[0], slope)
    return torch.where(bottoms[0] > 0, bottoms[0], slope * bottoms[0])


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


def _called(
    function: Callable[..., Tensor], layer: Translatable, bottoms: Tensors, params: Tensors
) -> Tops:
    return function(*bottoms)


_PLAIN: dict[str, Callable[..., Tensor]] = {
    "AbsVal": torch.abs,
    "BNLL": partial(functional.softplus, threshold=50),
    "Div": torch.div,
    "Sigmoid": torch.sigmoid,
    "TanH": torch.tanh,
}
_NARROW: dict[str, Callable[..., Tensor]] = {
    "HardSwish": functional.hardswish,
    "Mish": functional.mish,
    "ReLU6": functional.relu6,
}
"""The same for functions that take bfloat16 too."""
for _types in (_PLAIN, _NARROW):
    for _kind, _function in _types.items():
        translates(_kind, narrow=_types is _NARROW)(partial(_called, _function))


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


@translates("GELU", narrow=True)
def gelu(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return functional.gelu(bottoms[0], approximate=layer.options["approximate"])


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": truncate,
    "sin": torch.sin,
    "cos": torch.cos,
}


@translates("Math")
def math(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return _FUNCTIONS[layer.options["function"]](bottoms[0])


@translates("Dropout", narrow=True)
def dropout(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return _dropped(layer, bottoms[0], bottoms[0].shape)


@translates("SpatialDropout", narrow=True)
def spatial_dropout(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x = bottoms[0]
    return _dropped(layer, x, (*x.shape[:2], *(1,) * (x.dim() - 2)))


def _dropped(layer: Translatable, x: Tensor, shape: Sequence[int]) -> Tensor:
    """Drop by marks of this shape; in the test phase scale, if at all."""
    options = layer.options
    if not options["train"]:
        return x * options["scale"] if options["scale"] != 1 else x
    marks: Tensor = layer.draw().top40(prod(shape), x.device) >= int(options["ratio"] * 2.0**40)
    return x * (marks.reshape(shape).to(x.dtype) * options["scale"])


@translates("Eltwise", narrow=True)
def eltwise(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    if options["operation"] == "sum":
        return reduce(torch.add, map(_times, bottoms, options["coeff"]))
    if options["operation"] == "max":
        first, second, *more = bottoms
        return reduce(_earlier_of_equals, more, torch.where(first > second, first, second))
    if options["stable_prod_grad"]:
        return reduce(torch.mul, bottoms)
    return applied(_Quotient, *bottoms)


def _times(x: Tensor, coefficient: float) -> Tensor:
    return x if coefficient == 1 else x * coefficient


def _earlier_of_equals(a: Tensor, b: Tensor) -> Tensor:
    """Take the earlier of equals, but the later of the first two (Caffe: eltwise_layer.cpp)."""
    return torch.where(b > a, b, a)


class _Quotient(torch.autograd.Function):
    """A product whose gradient is product over factor: Caffe's without ``stable_prod_grad``."""

    @staticmethod
    def forward(ctx: Any, *factors: Tensor) -> Tensor:
        product = reduce(torch.mul, factors)
        ctx.save_for_backward(product, *factors)
        return product

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor, ...]:
        product, *factors = ctx.saved_tensors
        return tuple(product / one * given[0] for one in factors)


@translates("Reduction")
def reduction(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    shape = bottoms[0].shape[: options["axis"]]
    x = (
        bottoms[0].reshape(*shape, -1)
        if bottoms[0].numel()
        else bottoms[0].new_zeros(*shape, 1) + bottoms[0].sum()
    )
    operation = options["operation"]
    width = bottoms[0].numel() // max(1, shape.numel())
    if operation == "asum":
        x = x.abs()
    elif operation == "sumsq":
        x = x * x
    y = x.sum(-1, dtype=wide(x)).to(x.dtype) * options["coeff"]
    return y / width if operation == "mean" and width else y


def _spread(layer: Translatable, small: Tensor, x: Tensor) -> Tensor:
    """Return the small operand with axes behind its own."""
    axis, axes = layer.options["axis"], layer.options["num_axes"]
    shape: Sequence[int] = x.shape[axis : axis + axes]
    return small.reshape((*shape, *(1,) * (x.dim() - axis - axes)))


@translates("Scale", narrow=True)
def scale(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x = bottoms[0]
    factors, *bias = (one.to(x.dtype) for one in (*bottoms[1:], *params))
    spread = _spread(layer, factors, x)
    return torch.addcmul(_spread(layer, bias[0], x), x, spread) if bias else x * spread


@translates("Bias", narrow=True)
def bias(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x = bottoms[0]
    return x + _spread(layer, (*bottoms[1:], *params)[0].to(x.dtype), x)


@translates("Where", without_gradient={0: "condition"}, narrow=True)
def where(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    condition, chosen_values, other = bottoms
    return torch.where(condition != 0, chosen_values, other)


@translates("CumSum")
def cum_sum(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    x, options = bottoms[0], layer.options
    axis, many = options["axis"], bottoms[0].shape[options["axis"]]
    x = x.flip(axis) if options["reverse"] else x
    y = x.cumsum(axis, dtype=wide(x)).to(x.dtype)
    if options["exclusive"] and many:
        y = torch.cat((torch.zeros_like(y.narrow(axis, 0, 1)), y.narrow(axis, 0, many - 1)), axis)
    return y.flip(axis) if options["reverse"] else y


@translates("Axpy")
def axpy(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    factors, x, y = bottoms
    return factors.reshape(*x.shape[:2], *(1,) * (x.dim() - 2)) * x + y
