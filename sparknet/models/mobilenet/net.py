"""MobileNet 1.0-224: Howard et al. 2017; depthwise as grouped convolutions, for any Caffe."""

from __future__ import annotations

from typing import Any

from sparknet.dsl import (
    Accuracy,
    ActivationLayer,
    BatchNorm,
    ConvLayer,
    LayerSpec,
    NetParams,
    PoolLayer,
    Scale,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import inputs

PREPROCESSING = Preprocessing(mean=(103.94, 116.78, 123.68), scale=0.017)

BLOCKS = (
    ("2_1", 32, 64, 1),
    ("2_2", 64, 128, 2),
    ("3_1", 128, 128, 1),
    ("3_2", 128, 256, 2),
    ("4_1", 256, 256, 1),
    ("4_2", 256, 512, 2),
    ("5_1", 512, 512, 1),
    ("5_2", 512, 512, 1),
    ("5_3", 512, 512, 1),
    ("5_4", 512, 512, 1),
    ("5_5", 512, 512, 1),
    ("5_6", 512, 1024, 2),
    ("6", 1024, 1024, 1),
)
"""Name, channels in, channels out, stride of the depthwise convolution."""


def conv(
    name: str, bottom: str, filters: int, kernel: int, stride: int = 1, **options: Any
) -> list[LayerSpec]:
    """A convolution without bias, normalised, with its ReLU."""
    return [
        ConvLayer(
            name,
            bottom,
            kernel=kernel,
            num_filters=filters,
            stride=stride,
            pad=kernel // 2,
            bias_term=False,
            weight_filler="msra",
            **options,
        ),
        BatchNorm(f"{name}/bn", name, in_place=True, eps=1e-5),
        Scale(f"{name}/scale", name, in_place=True, bias_term=True),
        ActivationLayer(f"relu{name[4:]}", name, activation="relu", in_place=True),
    ]


def separable(name: str, bottom: str, channels: int, filters: int, stride: int) -> list[LayerSpec]:
    """One 3x3 filter for each channel, without decay, then a 1x1 convolution."""
    deep = f"conv{name}/dw"
    return [
        *conv(deep, bottom, channels, 3, stride, group=channels, lr_mult=1, decay_mult=0),
        *conv(f"conv{name}/sep", deep, filters, 1),
    ]


def body() -> list[LayerSpec]:
    made = conv("conv1", "data", 32, 3, 2)
    below = "conv1"
    for name, channels, filters, stride in BLOCKS:
        made += separable(name, below, channels, filters, stride)
        below = f"conv{name}/sep"
    return made


def net(batch: int = 64, test_batch: int = 50) -> NetParams:
    return NetParams(
        "MobileNet",
        inputs(batch, test_batch, (3, 224, 224)),
        body(),
        PoolLayer("pool6", "conv6/sep", pool="ave", global_pooling=True),
        ConvLayer(
            "fc7",
            "pool6",
            kernel=1,
            num_filters=1000,
            weight_filler="msra",
            bias_filler="constant",
        ),
        Accuracy("accuracy", ["fc7", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["fc7", "label"]),
    )


def solver() -> SolverParams:
    """Ours: the paper used RMSProp with momentum, which Caffe does not have."""
    return SolverParams(
        net=net(),
        snapshot_prefix="mobilenet",
        solver_mode="CPU",
        test_iter=1000,
        test_interval=5000,
        base_lr=0.045,
        lr_policy="poly",
        power=1,
        display=40,
        max_iter=600000,
        momentum=0.9,
        weight_decay=0.00004,
        snapshot=10000,
    )
