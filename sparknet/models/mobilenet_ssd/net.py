"""MobileNet-SSD on PASCAL VOC: SSD over MobileNet, in the layer names of chuanqi305's model."""

from __future__ import annotations

from sparknet.dsl import LayerSpec, NetParams, RDDLayer, SolverParams
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.mobilenet.net import BLOCKS, conv
from sparknet.models.ssd import Map, ssd

PREPROCESSING = Preprocessing(mean=(127.5,), scale=0.007843)

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


def body() -> list[LayerSpec]:
    """MobileNet 1.0, its blocks numbered, and four smaller maps."""
    made, below = conv("conv0", "data", 32, 3, 2), "conv0"
    for number, (_, channels, filters, stride) in enumerate(BLOCKS, 1):
        name = f"conv{number}"
        made += conv(f"{name}/dw", below, channels, 3, stride, group=channels)
        made += conv(name, f"{name}/dw", filters, 1)
        below = name
    for number, narrow, wide in EXTRA:
        name = f"conv{number}"
        made += conv(f"{name}_1", below, narrow, 1)
        made += conv(f"{name}_2", f"{name}_1", wide, 3, 2)
        below = f"{name}_2"
    return made


def net(batch: int = 24, test_batch: int = 8) -> NetParams:
    return NetParams(
        "MobileNet-SSD",
        [
            RDDLayer(name, shape=[size, *shape], include=phase)
            for phase, size in (("TRAIN", batch), ("TEST", test_batch))
            for name, shape in (("data", (3, SIDE, SIDE)), ("boxes", (BOXES, 5)))
        ],
        body(),
        ssd(MAPS, CLASSES, kernel_size=1, pad=0, weight_filler="msra"),
    )


def solver() -> SolverParams:
    """chuanqi305's: RMSProp, 120,000 iterations of 24, the rate halved twice."""
    return SolverParams(
        net=net(),
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
