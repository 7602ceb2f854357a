"""VGG-16, configuration D of Simonyan and Zisserman 2014, in the layer names of its zoo page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.dsl import (
    Accuracy,
    Convolution,
    Crop,
    Deconvolution,
    Dropout,
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
    layers: list[LayerSpec] = []
    below = "data"
    for block, (filters, count) in enumerate(blocks, 1):
        for step in range(1, count + 1):
            name = f"conv{block}_{step}"
            pad = first_pad if below == "data" else 1
            layers += conv_relu(name, below, filters, 3, f"relu{block}_{step}", pad=pad, **FILLED)
            below = name
        layers.append(max_pool(f"pool{block}", below, 2, 2))
        below = f"pool{block}"
    return layers


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
    """Return the paper's: 370,000 iterations of 256, the rate cut tenfold three times."""
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


FCN_PREPROCESSING = Preprocessing(mean=(104.007, 116.669, 122.679))

VOC_CLASSES = 21
VOID = 255
"""The label of pixels that do not count."""
OFFSET = 19
"""Where the image lies in the upsampled scores, after the padding of conv1_1."""


def dense(digit: str, bottom: str, kernel: int) -> list[LayerSpec]:
    """VGG's fc6 or fc7 as a convolution."""
    name = f"fc{digit}"
    return [
        *conv_relu(
            name,
            bottom,
            4096,
            kernel,
            f"relu{digit}",
            **BIAS_TWICE,
            weight_filler={"type": "gaussian", "std": 0.005},
        ),
        Dropout(f"drop{digit}", name, dropout_ratio=0.5, in_place=True),
    ]


def scores() -> list[LayerSpec]:
    """Class scores at 1/32 of the size, upsampled by fixed bilinear kernels and cropped."""
    return [
        # Scores start at 0, as the published net's do.
        Convolution("score_fr", "fc7", num_output=VOC_CLASSES, kernel_size=1, **BIAS_TWICE),
        Deconvolution(
            "upscore",
            "score_fr",
            num_output=VOC_CLASSES,
            group=VOC_CLASSES,
            kernel_size=64,
            stride=32,
            bias_term=False,
            weight_filler="bilinear",
            lr_mult=0,
        ),
        Crop("score", ["upscore", "data"], axis=2, offset=OFFSET),
    ]


def fcn(batch: int = 1, test_batch: int = 1, height: int = 500, width: int = 500) -> NetParams:
    """FCN-32s on PASCAL VOC: Long, Shelhamer and Darrell 2015, over VGG-16."""
    return NetParams(
        "FCN-32s",
        inputs(batch, test_batch, (3, height, width), label=(1, height, width)),
        convolutions(first_pad=100),
        dense("6", "pool5", 7),
        dense("7", "fc6", 1),
        scores(),
        Accuracy("accuracy", ["score", "label"], include="TEST", ignore_label=VOID),
        SoftmaxWithLoss("loss", ["score", "label"], normalize=False, ignore_label=VOID),
    )


def fcn_solver() -> SolverParams:
    """Return the authors' high-momentum setting, for a loss summed over all pixels."""
    return SolverParams(
        net=fcn(),
        snapshot_prefix="fcn",
        solver_mode="CPU",
        test_iter=1111,
        test_interval=999999999,
        test_initialization=False,
        display=20,
        average_loss=20,
        lr_policy="fixed",
        base_lr=1e-10,
        momentum=0.99,
        iter_size=1,
        max_iter=100000,
        weight_decay=0.0005,
        snapshot=4000,
    )
