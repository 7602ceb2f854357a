"""Layers that are computed as one: a BatchNorm, and the Scale that comes after it in its place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor

from sparknet.torch.layer import TorchLayer


def joined_layers(layers: Sequence[TorchLayer]) -> dict[int, TorchLayer]:
    """By the number of the first of two layers the one that stands for both.

    Nobody sees what lies between them, as it is overwritten.
    """
    found = {}
    for norm, scale in itertools.pairwise(layers):
        if _are_one(norm, scale):
            one = copy(norm)
            one.numbers = (norm.number, scale.number)
            one.tops = scale.tops
            one.params = [*norm.params, *scale.params]
            one.learns = [*norm.learns, *scale.learns]
            one.backward = norm.backward or scale.backward
            one.record = None
            found[norm.number] = one
    return found


def taken_apart(one: TorchLayer, norm: TorchLayer, scale: TorchLayer) -> None:
    """Let each of the two layers have the notes of a forward pass of its own, where the passes back
    of both are not one."""
    assert one.record is not None
    assert norm.translation is not None
    assert scale.translation is not None
    (x,), (mean, variance, count, *factors) = one.record[1], one.record[2]
    statistics = [mean, variance, count]
    before = [values.clone() for values in statistics]
    with torch.enable_grad():
        between = norm.translation.compute(norm, [x], statistics)
        assert isinstance(between, Tensor)
        given = between.detach().requires_grad_(scale.propagate[0])
        made = scale.translation.compute(scale, [given], factors)
    assert isinstance(made, Tensor)
    for values, kept in zip(statistics, before, strict=True):
        values.detach().copy_(kept)
    norm.record = ([between], [x], statistics)
    scale.record = ([made], [given], factors)
    one.record = None


def _are_one(norm: TorchLayer, scale: TorchLayer) -> bool:
    if (norm.type, scale.type) != ("BatchNorm", "Scale") or len(norm.params) != 3:
        return False
    if any((*norm.loss_weights, *scale.loss_weights)) or len(scale.bottoms) != 1:
        return False
    options = scale.options
    return (
        norm.tops[0] is scale.bottoms[0] is scale.tops[0]
        and len(norm.tops) == 1
        and options["axis"] == 1
        and options["num_axes"] == 1
        and len(norm.bottoms[0].shape) > 1
    )
