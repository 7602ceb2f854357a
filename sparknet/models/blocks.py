"""Blocks that several of the nets share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.dsl import (
    ActivationLayer,
    ConvLayer,
    LayerSpec,
    LinearLayer,
    PoolLayer,
    RDDLayer,
)

BIAS_TWICE: dict[str, Any] = {"lr_mult": [1, 2], "decay_mult": [1, 0]}
"""The zoo's habit: biases learn twice as fast and do not decay."""


def inputs(
    train: int, test: int, shape: Sequence[int], label: Sequence[int] = ()
) -> list[LayerSpec]:
    """``data`` and ``label`` for both phases, each with its batch size."""
    return [
        RDDLayer(blob, shape=[batch, *rest], include=phase)
        for phase, batch in (("TRAIN", train), ("TEST", test))
        for blob, rest in (("data", shape), ("label", label))
    ]


def conv_relu(
    name: str, bottom: str, filters: int, kernel: int, relu: str, **options: Any
) -> list[LayerSpec]:
    """Return a convolution and its ReLU, in place."""
    return [
        ConvLayer(name, bottom, kernel=kernel, num_filters=filters, **options),
        ActivationLayer(relu, name, activation="relu", in_place=True),
    ]


def linear_relu_dropout(
    digit: str, bottom: str, outputs: int, ratio: float, **options: Any
) -> list[LayerSpec]:
    """``fc6``, ``relu6`` and ``drop6`` for digit 6."""
    from sparknet.dsl import Dropout

    return [
        LinearLayer(f"fc{digit}", bottom, num_outputs=outputs, **options),
        ActivationLayer(f"relu{digit}", f"fc{digit}", activation="relu", in_place=True),
        Dropout(f"drop{digit}", f"fc{digit}", dropout_ratio=ratio, in_place=True),
    ]


def max_pool(name: str, bottom: str, kernel: int, stride: int) -> LayerSpec:
    return PoolLayer(name, bottom, pool="max", kernel=kernel, stride=stride)
