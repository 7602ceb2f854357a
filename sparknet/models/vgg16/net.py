"""VGG-16, configuration D of Simonyan and Zisserman 2014, in the layer names of its zoo page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.dsl import (
    Accuracy,
    LayerSpec,
    LinearLayer,
    NetParams,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import BIAS_TWICE, conv_relu, inputs, linear_relu_dropout, max_pool

PREPROCESSING = Preprocessing(mean=(103.939, 116.779, 123.68))

FILLED: dict[str, Any] = {
    **BIAS_TWICE,
    "weight_filler": {"type": "gaussian", "std": 0.01},
    "bias_filler": {"type": "constant", "value": 0},
}
BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Filters and convolutions of each block."""


def convolutions(first_pad: int = 1, blocks: Sequence[tuple[int, int]] = BLOCKS) -> list[LayerSpec]:
    made: list[LayerSpec] = []
    below = "data"
    for block, (filters, count) in enumerate(blocks, 1):
        for step in range(1, count + 1):
            name = f"conv{block}_{step}"
            pad = first_pad if below == "data" else 1
            made += conv_relu(name, below, filters, 3, f"relu{block}_{step}", pad=pad, **FILLED)
            below = name
        made.append(max_pool(f"pool{block}", below, 2, 2))
        below = f"pool{block}"
    return made


def net(batch: int = 256, test_batch: int = 50) -> NetParams:
    return NetParams(
        "VGG_ILSVRC_16_layers",
        inputs(batch, test_batch, (3, 224, 224)),
        convolutions(),
        linear_relu_dropout("6", "pool5", 4096, 0.5, **FILLED),
        linear_relu_dropout("7", "fc6", 4096, 0.5, **FILLED),
        LinearLayer("fc8", "fc7", num_outputs=1000, **FILLED),
        Accuracy("accuracy", ["fc8", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["fc8", "label"]),
    )


def solver() -> SolverParams:
    """The paper's: 370,000 iterations of 256, the rate cut tenfold three times."""
    return SolverParams(
        net=net(),
        snapshot_prefix="vgg16",
        solver_mode="CPU",
        test_iter=1000,
        test_interval=5000,
        base_lr=0.01,
        lr_policy="step",
        gamma=0.1,
        stepsize=100000,
        display=20,
        max_iter=370000,
        momentum=0.9,
        weight_decay=0.0005,
        snapshot=10000,
    )
