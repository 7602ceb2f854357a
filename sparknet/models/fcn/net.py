"""FCN-32s on PASCAL VOC: Long, Shelhamer and Darrell 2015, over VGG-16."""

from __future__ import annotations

from sparknet.dsl import (
    Accuracy,
    Convolution,
    Crop,
    Deconvolution,
    Dropout,
    LayerSpec,
    NetParams,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import BIAS_TWICE, conv_relu, inputs
from sparknet.models.vgg16.net import convolutions

PREPROCESSING = Preprocessing(mean=(104.007, 116.669, 122.679))

CLASSES = 21
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
        Convolution("score_fr", "fc7", num_output=CLASSES, kernel_size=1, **BIAS_TWICE),
        Deconvolution(
            "upscore",
            "score_fr",
            num_output=CLASSES,
            group=CLASSES,
            kernel_size=64,
            stride=32,
            bias_term=False,
            weight_filler="bilinear",
            lr_mult=0,
        ),
        Crop("score", ["upscore", "data"], axis=2, offset=OFFSET),
    ]


def net(batch: int = 1, test_batch: int = 1, height: int = 500, width: int = 500) -> NetParams:
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


def solver() -> SolverParams:
    """The authors' high-momentum setting, for a loss summed over all pixels."""
    return SolverParams(
        net=net(),
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
