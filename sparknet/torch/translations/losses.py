"""Losses with Caffe's divisors, ignored labels and gradients; ArgMax, Accuracy and Filter."""

from __future__ import annotations

from math import log
from typing import Any

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
    wide,
)

_LEAST = 1.1754943508222875e-38
_TINY = 1e-20


def labels_of(layer: Translatable, given: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return class numbers, cut off as in Caffe, and which count; others are 0."""
    numbers = truncate(given.detach())
    ignored = layer.options.get("ignore_label")
    counted = torch.ones_like(numbers, dtype=torch.bool)
    if ignored is not None:
        counted = numbers != ignored
    fine = (numbers >= 0) & (numbers < classes)
    bad = counted & ~fine
    layer.check(
        ~bad.any(),
        lambda: f"label {given[bad][0]:g} is out of range: there are {classes} classes",
    )
    picked = torch.where(counted & fine, numbers, torch.zeros_like(numbers)).to(torch.int64)
    return picked, counted


def divisor(layer: Translatable, outer: int, inner: int, counted: Tensor | None) -> Tensor | float:
    """At least 1 (Caffe: loss_layer.cpp, GetNormalizer)."""
    mode = layer.options["normalization"]
    if mode == "valid":
        if counted is None:
            return float(max(1, outer * inner))
        return counted.sum().clamp(min=1).to(torch.float32)
    if mode == "pre_fixed":
        return float(max(1.0, layer.options["pre_fixed_normalizer"]))
    return float(max(1, {"full": outer * inner, "batch_size": outer}.get(mode, 1)))


class _AtLeast(torch.autograd.Function):
    """Values of at least a bound, with the gradient of the values themselves."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, least: float) -> Tensor:
        return values.clamp(min=least)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, None]:
        return given, None


def _weighed(layer: Translatable, items: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return each item times the weight of its record; items lie as the first bottom's axes do."""
    weights = layer.record_weights
    if weights is None:
        return items
    axis = weights.dim() - 1
    rows = 1
    for size in shape[: axis + 1]:
        rows *= size
    each = max(1, items.numel() // rows) if rows else 1
    spread = weights.reshape(-1).repeat(max(1, rows // max(1, weights.numel())))
    return items.reshape(-1) * spread.repeat_interleave(each)


@translates("SoftmaxWithLoss", without_gradient={1: "labels"})
def softmax_with_loss(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    outer, channels, inner = options["outer"], options["channels"], options["inner"]
    x = bottoms[0].reshape(outer, channels, inner)
    if x.numel() == 0:
        return tuple(x.new_zeros(shape) + x.sum() * 0 for shape in layer.top_shapes)
    labels, counted = labels_of(layer, bottoms[1], channels)
    labels, counted = labels.reshape(outer, inner), counted.reshape(outer, inner)
    logs = torch.log_softmax(x, 1)
    own = logs.gather(1, labels.unsqueeze(1)).squeeze(1)
    # Caffe's probabilities are at least FLT_MIN; its gradient is not cut off there.
    losses = -applied(_AtLeast, own, log(_LEAST))
    if "class_weights" in options:
        by_class = on_device(layer, options["class_weights"], x)
        losses = losses * by_class[labels]
    losses = torch.where(counted, losses, torch.zeros_like(losses))
    loss = _mean(layer, losses, bottoms[0], divisor(layer, outer, inner, counted))
    more = (
        logs.detach().exp().reshape(bottoms[0].shape),
        losses.detach().reshape(bottoms[1].shape),
    )
    return (loss, *more[: len(layer.top_shapes) - 1])


@translates("InfogainLoss", without_gradient={1: "labels", 2: "infogain matrix"})
def infogain_loss(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    outer, channels, inner = options["outer"], options["channels"], options["inner"]
    x = bottoms[0].reshape(outer, channels, inner)
    labels, counted = labels_of(layer, bottoms[1], channels)
    labels, counted = labels.reshape(outer, inner), counted.reshape(outer, inner)
    matrix = bottoms[2] if len(bottoms) > 2 else on_device(layer, options["matrix"], x)
    rows = matrix.reshape(channels, channels)[labels].movedim(-1, 1)
    logs = torch.log_softmax(x, 1)
    losses = -(rows * applied(_AtLeast, logs, log(_TINY))).sum(1)
    losses = torch.where(counted, losses, torch.zeros_like(losses))
    loss = _mean(layer, losses, bottoms[0], divisor(layer, outer, inner, counted))
    if len(layer.top_shapes) == 1:
        return loss
    return loss, logs.detach().exp().reshape(bottoms[0].shape)


def _mean(layer: Translatable, losses: Tensor, data: Tensor, by: Tensor | float) -> Tensor:
    """Return the sum with records' weights, divided; its gradient gets the weights later."""
    total = losses.sum(dtype=wide(losses))
    if layer.record_weights is not None:
        loss = _weighed(layer, losses.detach(), tuple(data.shape)).sum(dtype=wide(losses))
        total = total + (loss - total.detach())
    mean: Tensor = (total / by).to(data.dtype)
    return mean


@translates("SigmoidCrossEntropyLoss", without_gradient={1: "targets"})
def sigmoid_cross_entropy_loss(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    outer, inner = options["outer"], options["inner"]
    x = bottoms[0].reshape(outer, inner)
    targets = bottoms[1].detach().reshape(outer, inner)
    losses = functional.binary_cross_entropy_with_logits(x, targets, reduction="none")
    counted = None
    if options["class_balanced"]:
        zeros, ones = (targets == 0).sum(1, True), (targets == 1).sum(1, True)
        share = zeros / (zeros + ones).clamp(min=1)
        losses = losses * torch.where(
            targets == 1, share, torch.where(targets == 0, 1 - share, torch.zeros_like(share))
        )
    if options["ignore_label"] is not None:
        counted = truncate(targets) != options["ignore_label"]
        losses = torch.where(counted, losses, torch.zeros_like(losses))
    return _mean(layer, losses, bottoms[0], divisor(layer, outer, inner, counted))


def _items(layer: Translatable) -> int:
    return max(1, int(layer.options["num"]))


@translates("EuclideanLoss")
def euclidean_loss(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    distance = bottoms[0].reshape(-1) - bottoms[1].reshape(-1)
    return _mean(layer, distance * distance, bottoms[0], 2 * _items(layer))


@translates("HingeLoss", without_gradient={1: "labels"})
def hinge_loss(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    num, channels = layer.options["num"], layer.options["channels"]
    labels, _ = labels_of(layer, bottoms[1], channels)
    sign = bottoms[0].new_ones(num, channels)
    sign = sign.scatter(1, labels.reshape(-1, 1), -1.0)
    margin = functional.relu(1 + sign * bottoms[0].reshape(num, channels))
    if layer.options["norm"] == "l2":
        margin = margin * margin
    return _mean(layer, margin, bottoms[0], _items(layer))


@translates("MultinomialLogisticLoss", without_gradient={1: "labels"})
def multinomial_logistic_loss(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    num, channels = layer.options["num"], layer.options["channels"]
    labels, _ = labels_of(layer, bottoms[1], channels)
    own = bottoms[0].reshape(num, channels).gather(1, labels.reshape(-1, 1))
    # Below the least probability the slope is that at it.
    losses = -torch.log(applied(_AtLeast, own, _TINY))
    return _mean(layer, losses, bottoms[0], _items(layer))


class _Apart(torch.autograd.Function):
    """The loss of unlike pairs; Caffe's gradient adds 1e-4 to the distance that it divides by."""

    @staticmethod
    def forward(ctx: Any, difference: Tensor, margin: float, legacy: bool) -> Tensor:
        squared = (difference * difference).sum(1, dtype=wide(difference)).to(difference.dtype)
        distance = squared.sqrt()
        if legacy:
            lack = (margin - squared).clamp(min=0)
            factor = torch.where(
                margin - squared > 0, -torch.ones_like(lack), torch.zeros_like(lack)
            )
            loss = lack
        else:
            lack = margin - distance
            factor = torch.where(lack > 0, -lack / (distance + 1e-4), torch.zeros_like(lack))
            loss = lack.clamp(min=0) ** 2
        ctx.save_for_backward(2 * factor[:, None] * difference)
        return loss

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, None, None]:
        return given[:, None] * ctx.saved_tensors[0], None, None


@translates("ContrastiveLoss")
def contrastive_loss(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    options = layer.options
    num, channels = options["num"], options["channels"]
    same = bottoms[2].detach().reshape(-1)
    fine = torch.isfinite(same)
    layer.check(fine.all(), lambda: f"label {same[~fine][0]:f} is neither 0 nor 1")
    difference = bottoms[0].reshape(num, channels) - bottoms[1].reshape(num, channels)
    together = (difference * difference).sum(1)
    apart = applied(_Apart, difference, options["margin"], options["legacy_version"])
    losses = torch.where(truncate(same) != 0, together, apart)
    return _mean(layer, losses, bottoms[0], 2 * _items(layer))


@translates("ArgMax", no_gradient=True)
def argmax(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """Take the later place of equal values; NaN comes after every number."""
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
    counts = classes.index_add(0, labels.reshape(-1), counted.reshape(-1).to(x.dtype))
    hits = classes.index_add(0, labels.reshape(-1), right.reshape(-1).to(x.dtype))
    return share, _share(hits, counts)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    whole = whole.to(torch.float32)
    share: Tensor = torch.where(whole > 0, part.to(torch.float32) / whole, torch.zeros_like(whole))
    return share


def _selector(bottoms: int) -> dict[int, str]:
    return {bottoms - 1: "selector"}


@translates("Filter", without_gradient=_selector, waits=True)
def filtered(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """Wait for the device: the number of items left is known here."""
    *data, marks = bottoms
    rows = torch.nonzero(marks.reshape(-1) != 0).reshape(-1)
    return tuple(one.index_select(0, rows) for one in data)
