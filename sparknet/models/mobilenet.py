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
    RDDLayer,
    Scale,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import inputs
from sparknet.models.ssd import Map, ssd

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
    """Return a convolution without bias, normalised, with its ReLU."""
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
    """Return one 3x3 filter for each channel, without decay, then a 1x1 convolution."""
    deep = f"conv{name}/dw"
    return [
        *conv(deep, bottom, channels, 3, stride, group=channels, lr_mult=1, decay_mult=0),
        *conv(f"conv{name}/sep", deep, filters, 1),
    ]


def body() -> list[LayerSpec]:
    layers = conv("conv1", "data", 32, 3, 2)
    below = "conv1"
    for name, channels, filters, stride in BLOCKS:
        layers += separable(name, below, channels, filters, stride)
        below = f"conv{name}/sep"
    return layers


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


MOBILENET_SSD_PREPROCESSING = Preprocessing(mean=(127.5,), scale=0.007843)

CLASSES, SIDE, BOXES = 21, 300, 64
"""The background is class 0; a picture of VOC has at most 56 objects."""
MAPS = (
    Map("conv11", 60, ratios=[2]),
    Map("conv13", 105, 150, ratios=[2, 3]),
    Map("conv14_2", 150, 195, ratios=[2, 3]),
    Map("conv15_2", 195, 240, ratios=[2, 3]),
    Map("conv16_2", 240, 285, ratios=[2, 3]),
    Map("conv17_2", 285, 300, ratios=[2, 3]),
)
"""19, 10, 5, 3, 2 and 1 places wide: 1,917 boxes."""
EXTRA = ((14, 256, 512), (15, 128, 256), (16, 128, 256), (17, 64, 128))
"""The number of a block above MobileNet's, and the filters of its two convolutions."""


def ssd_body() -> list[LayerSpec]:
    """MobileNet 1.0, its blocks numbered, and four smaller maps."""
    layers, below = conv("conv0", "data", 32, 3, 2), "conv0"
    for number, (_, channels, filters, stride) in enumerate(BLOCKS, 1):
        name = f"conv{number}"
        layers += conv(f"{name}/dw", below, channels, 3, stride, group=channels)
        layers += conv(name, f"{name}/dw", filters, 1)
        below = name
    for number, narrow, wide in EXTRA:
        name = f"conv{number}"
        layers += conv(f"{name}_1", below, narrow, 1)
        layers += conv(f"{name}_2", f"{name}_1", wide, 3, 2)
        below = f"{name}_2"
    return layers


def mobilenet_ssd(batch: int = 24, test_batch: int = 8) -> NetParams:
    """MobileNet-SSD on PASCAL VOC: SSD over MobileNet, in the layer names of chuanqi305's model."""
    return NetParams(
        "MobileNet-SSD",
        [
            RDDLayer(name, shape=[size, *shape], include=phase)
            for phase, size in (("TRAIN", batch), ("TEST", test_batch))
            for name, shape in (("data", (3, SIDE, SIDE)), ("boxes", (BOXES, 5)))
        ],
        ssd_body(),
        ssd(MAPS, CLASSES, kernel_size=1, pad=0, weight_filler="msra"),
    )


def mobilenet_ssd_solver() -> SolverParams:
    """chuanqi305's: RMSProp, 120,000 iterations of 24, the rate halved twice."""
    return SolverParams(
        net=mobilenet_ssd(),
        type="RMSProp",
        snapshot_prefix="mobilenet_ssd",
        solver_mode="CPU",
        test_iter=619,
        test_interval=10000,
        base_lr=0.0005,
        lr_policy="multistep",
        gamma=0.5,
        stepvalue=[20000, 40000],
        display=10,
        max_iter=120000,
        weight_decay=0.00005,
        snapshot=1000,
    )
