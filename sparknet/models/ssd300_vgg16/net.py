"""SSD-300 on PASCAL VOC: Liu et al. 2016, over VGG-16; with boxes as an input."""

from __future__ import annotations

from typing import Any

from sparknet.dsl import (
    Convolution,
    LayerSpec,
    NetParams,
    Normalize,
    PoolLayer,
    RDDLayer,
    ReLU,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import BIAS_TWICE, max_pool
from sparknet.models.ssd import Map, ssd
from sparknet.models.vgg16.net import BLOCKS

PREPROCESSING = Preprocessing(mean=(104, 117, 123))

CLASSES, SIDE, BOXES = 21, 300, 64
"""The background is class 0; a picture of VOC has at most 56 objects."""
FILLED: dict[str, Any] = {**BIAS_TWICE, "weight_filler": "xavier"}
MAPS = (
    Map("conv4_3_norm", 30, 60, ratios=[2], step=8),
    Map("fc7", 60, 111, ratios=[2, 3], step=16),
    Map("conv6_2", 111, 162, ratios=[2, 3], step=32),
    Map("conv7_2", 162, 213, ratios=[2, 3], step=64),
    Map("conv8_2", 213, 264, ratios=[2], step=100),
    Map("conv9_2", 264, 315, ratios=[2], step=300),
)
"""38, 19, 10, 5, 3 and 1 places wide: 8,732 boxes."""
EXTRA = (
    ("conv6_1", "fc7", 256, 1, 1, 0),
    ("conv6_2", "conv6_1", 512, 3, 2, 1),
    ("conv7_1", "conv6_2", 128, 1, 1, 0),
    ("conv7_2", "conv7_1", 256, 3, 2, 1),
    ("conv8_1", "conv7_2", 128, 1, 1, 0),
    ("conv8_2", "conv8_1", 256, 3, 1, 0),
    ("conv9_1", "conv8_2", 128, 1, 1, 0),
    ("conv9_2", "conv9_1", 256, 3, 1, 0),
)
"""Name, bottom, filters, kernel, stride and pad of the maps above VGG's."""


def conv(name: str, bottom: str, filters: int, kernel: int, **options: Any) -> list[LayerSpec]:
    return [
        Convolution(name, bottom, num_output=filters, kernel_size=kernel, **options, **FILLED),
        ReLU(f"{name}_relu" if name[4:5] in "6789" else f"relu{name[4:]}", name, in_place=True),
    ]


def body() -> list[LayerSpec]:
    """VGG-16 with its dense layers as convolutions, the first of them dilated."""
    made: list[LayerSpec] = []
    below = "data"
    for block, (filters, count) in enumerate(BLOCKS, 1):
        for step in range(1, count + 1):
            name = f"conv{block}_{step}"
            made += conv(name, below, filters, 3, pad=1)
            below = name
        pool = f"pool{block}"
        if block < len(BLOCKS):
            made.append(max_pool(pool, below, 2, 2))
        else:
            made.append(PoolLayer(pool, below, pool="max", kernel=3, stride=1, pad=1))
        below = pool
    return [
        *made,
        *conv("fc6", "pool5", 1024, 3, pad=6, dilation=6),
        *conv("fc7", "fc6", 1024, 1),
        *(
            layer
            for name, bottom, filters, kernel, stride, pad in EXTRA
            for layer in conv(name, bottom, filters, kernel, stride=stride, pad=pad)
        ),
        Normalize(
            "conv4_3_norm",
            "conv4_3",
            across_spatial=False,
            channel_shared=False,
            scale_filler={"type": "constant", "value": 20},
        ),
    ]


def net(batch: int = 32, test_batch: int = 8) -> NetParams:
    return NetParams(
        "VGG_VOC0712_SSD_300x300",
        [
            RDDLayer(name, shape=[size, *shape], include=phase)
            for phase, size in (("TRAIN", batch), ("TEST", test_batch))
            for name, shape in (("data", (3, SIDE, SIDE)), ("boxes", (BOXES, 5)))
        ],
        body(),
        ssd(MAPS, CLASSES, **FILLED),
    )


def solver() -> SolverParams:
    """The authors': 120,000 iterations of 32, the rate cut tenfold twice."""
    return SolverParams(
        net=net(),
        snapshot_prefix="ssd300_vgg16",
        solver_mode="CPU",
        test_iter=619,
        test_interval=10000,
        base_lr=0.001,
        lr_policy="multistep",
        gamma=0.1,
        stepvalue=[80000, 100000, 120000],
        display=10,
        max_iter=120000,
        momentum=0.9,
        weight_decay=0.0005,
        snapshot=80000,
    )
