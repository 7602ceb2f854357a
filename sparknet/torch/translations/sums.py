"""Eltwise, Reduction, Scale, Bias, and what forks and ONNX add to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from sparknet.torch.translations.table import Tensors, Tops, Translatable, applied, translates, wide


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
    """Of the first two bottoms it is the later one (Caffe: eltwise_layer.cpp)."""
    return torch.where(b > a, b, a)


class _Quotient(torch.autograd.Function):
    """A product whose gradient is the quotient of product and factor, as Caffe's is unless
    ``stable_prod_grad``: where a factor is 0, it is not a number."""

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
    """The small operand with axes behind its own."""
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


@translates("Div")
def div(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    return bottoms[0] / bottoms[1]


@translates("Where", without_gradient={0: "condition"}, narrow=True)
def where(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    condition, taken, other = bottoms
    return torch.where(condition != 0, taken, other)


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
