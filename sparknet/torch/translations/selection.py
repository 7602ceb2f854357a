"""ArgMax, Accuracy and Filter."""

from __future__ import annotations

import torch
from torch import Tensor

from sparknet.torch.translations.losses import labels_of
from sparknet.torch.translations.table import Tensors, Tops, Translatable, translates


@translates("ArgMax", no_gradient=True)
def argmax(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """Of equal values the later place counts; NaN comes after every number."""
    options = layer.options
    outer, channels, inner = options["outer"], options["channels"], options["inner"]
    top_k, shape = options["top_k"], layer.top_shapes[0]
    x = (
        bottoms[0]
        .reshape(outer, channels, inner)
        .nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    )
    order = x.flip(1).argsort(dim=1, descending=True, stable=True)[:, :top_k]
    places = channels - 1 - order
    values = bottoms[0].reshape(outer, channels, inner).gather(1, places)
    numbers = places.to(torch.float32)
    if options.get("axis") is not None:
        return (values if options["out_max_val"] else numbers).reshape(shape)
    if options["out_max_val"]:
        return torch.stack((numbers, values), 1).reshape(shape)
    return numbers.reshape(shape)


@translates("Accuracy", no_gradient=True)
def accuracy(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    outer, channels, inner = options["outer"], options["channels"], options["inner"]
    labels, counted = labels_of(layer, bottoms[1], channels)
    labels, counted = labels.reshape(outer, 1, inner), counted.reshape(outer, 1, inner)
    x = bottoms[0].reshape(outer, channels, inner)
    if x.numel() == 0:
        zeros = [x.new_zeros(shape) for shape in layer.top_shapes]
        return tuple(zeros)
    own = x.gather(1, labels)
    better = (~(x < own)).sum(1, keepdim=True) - 1
    right = (better < options["top_k"]) & counted
    share = _share(right.sum(), counted.sum())
    if len(layer.top_shapes) == 1:
        return share
    classes = x.new_zeros(channels)
    seen = classes.index_add(0, labels.reshape(-1), counted.reshape(-1).to(x.dtype))
    hits = classes.index_add(0, labels.reshape(-1), right.reshape(-1).to(x.dtype))
    return share, _share(hits, seen)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    whole = whole.to(torch.float32)
    found: Tensor = torch.where(whole > 0, part.to(torch.float32) / whole, torch.zeros_like(whole))
    return found


def _selector(bottoms: int) -> dict[int, str]:
    return {bottoms - 1: "selector"}


@translates("Filter", without_gradient=_selector, waits=True)
def filtered(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """How many items are left is known here: the device has to be waited for."""
    *data, marks = bottoms
    kept = torch.nonzero(marks.reshape(-1) != 0).reshape(-1)
    return tuple(one.index_select(0, kept) for one in data)
