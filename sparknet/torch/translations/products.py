"""InnerProduct, MatMul and Embed."""

from __future__ import annotations

from math import prod

import torch
from torch.nn import functional

from sparknet.torch.translations.table import (
    Tensors,
    Tops,
    Translatable,
    aligned,
    cut,
    matrix_product,
    translates,
)


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
    given = bottoms[0]
    numbers = cut(given)
    fine = (numbers >= 0) & (numbers < rows)
    layer.check(
        fine.all(),
        lambda: f"index {given[~fine][0]:g} is out of range: there are {rows} rows",
    )
    y = functional.embedding(numbers.clamp(0, rows - 1).to(torch.int64), params[0])
    return y + params[1] if layer.options["bias_term"] else y
