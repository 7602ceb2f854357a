"""The heads of SSD (Liu et al. 2016): boxes and classes predicted at each place of some maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparknet.dsl import (
    Concat,
    Convolution,
    DetectionEvaluate,
    DetectionOutput,
    Flatten,
    LayerSpec,
    MultiBoxLoss,
    NetParams,
    Normalize,
    Permute,
    PoolLayer,
    PriorBox,
    RDDLayer,
    ReLU,
    Reshape,
    Softmax,
    SolverParams,
    TrueBoxes,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import BIAS_TWICE, max_pool
from sparknet.models.vgg16 import BLOCKS


@dataclass(frozen=True)
class Map:
    """A map on which SSD finds objects, and the sizes in pixels of the boxes it starts from."""

    blob: str
    least: float
    """The side of a square box."""
    most: float | None = None
    """With it there is another square, of side √(least · most)."""
    ratios: Sequence[float] = ()
    """For each there are boxes as much wider than high, and as much higher than wide."""
    step: float | None = None
    """The pixels between places; the image's size over the map's unless given."""

    @property
    def priors(self) -> int:
        """The boxes at each place."""
        return 1 + (self.most is not None) + 2 * len(self.ratios)

    def prior_boxes(self, data: str) -> LayerSpec:
        options: dict[str, Any] = {"min_size": self.least, "variance": [0.1, 0.1, 0.2, 0.2]}
        if self.most is not None:
            options["max_size"] = self.most
        if self.ratios:
            options |= {"aspect_ratio": list(self.ratios), "flip": True}
        if self.step is not None:
            options["step"] = self.step
        name = f"{self.blob}_mbox_priorbox"
        layer: LayerSpec = PriorBox(name, [self.blob, data], clip=False, **options)
        return layer


def ssd(
    maps: Sequence[Map],
    classes: int,
    *,
    data: str = "data",
    boxes: str = "boxes",
    confidence: float = 0.01,
    keep: int = 200,
    **convolution: Any,
) -> list[LayerSpec]:
    """SSD's layers over some maps, in the authors' names: a loss for training; in testing
    ``detection_out``, and ``mean_ap``, the mean average precision.

    ``classes`` counts the background, which is class 0.  ``boxes`` is an input of records x the
    most boxes of a record x 5 (TrueBoxes).  Detections below ``confidence`` are left out, and
    ``keep`` of an image stay.  Other keywords are for the convolutions."""
    options = {"kernel_size": 3, "pad": 1, "weight_filler": "xavier"} | convolution
    heads = [
        layer
        for one in maps
        for part, values in (("loc", 4), ("conf", classes))
        for layer in _head(f"{one.blob}_mbox_{part}", one.blob, one.priors * values, options)
    ]
    joined = [
        Concat(f"mbox_{part}", [f"{one.blob}_mbox_{part}{end}" for one in maps], axis=axis)
        for part, end, axis in (("loc", "_flat", 1), ("conf", "_flat", 1), ("priorbox", "", 2))
    ]
    return [
        *heads,
        *(one.prior_boxes(data) for one in maps),
        *joined,
        TrueBoxes("true_boxes", boxes),
        MultiBoxLoss(
            "mbox_loss",
            ["mbox_loc", "mbox_conf", "mbox_priorbox", "true_boxes"],
            include="TRAIN",
            num_classes=classes,
            code_type="CENTER_SIZE",
        ),
        *_detections(classes, confidence, keep),
    ]


def _head(name: str, bottom: str, outputs: int, options: dict[str, Any]) -> list[LayerSpec]:
    """Return a convolution whose values are in the order of places, one row for each record."""
    return [
        Convolution(name, bottom, num_output=outputs, **options),
        Permute(f"{name}_perm", name, order=[0, 2, 3, 1]),
        Flatten(f"{name}_flat", f"{name}_perm", axis=1),
    ]


def _detections(classes: int, confidence: float, keep: int) -> list[LayerSpec]:
    return [
        Reshape("mbox_conf_reshape", "mbox_conf", include="TEST", shape=[0, -1, classes]),
        Softmax("mbox_conf_softmax", "mbox_conf_reshape", include="TEST", axis=2),
        Flatten("mbox_conf_flatten", "mbox_conf_softmax", include="TEST", axis=1),
        DetectionOutput(
            "detection_out",
            ["mbox_loc", "mbox_conf_flatten", "mbox_priorbox"],
            include="TEST",
            num_classes=classes,
            code_type="CENTER_SIZE",
            confidence_threshold=confidence,
            keep_top_k=keep,
            nms_param={"nms_threshold": 0.45, "top_k": 2 * keep},
        ),
        DetectionEvaluate(
            "mean_ap", ["detection_out", "true_boxes"], include="TEST", num_classes=classes
        ),
    ]


SSD300_VGG16_PREPROCESSING = Preprocessing(mean=(104, 117, 123))

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
    layers: list[LayerSpec] = []
    below = "data"
    for block, (filters, count) in enumerate(BLOCKS, 1):
        for step in range(1, count + 1):
            name = f"conv{block}_{step}"
            layers += conv(name, below, filters, 3, pad=1)
            below = name
        pool = f"pool{block}"
        if block < len(BLOCKS):
            layers.append(max_pool(pool, below, 2, 2))
        else:
            layers.append(PoolLayer(pool, below, pool="max", kernel=3, stride=1, pad=1))
        below = pool
    return [
        *layers,
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


def ssd300_vgg16(batch: int = 32, test_batch: int = 8) -> NetParams:
    """SSD-300 on PASCAL VOC: Liu et al. 2016, over VGG-16; with boxes as an input."""
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


def ssd300_vgg16_solver() -> SolverParams:
    """Return the authors': 120,000 iterations of 32, the rate cut tenfold twice."""
    return SolverParams(
        net=ssd300_vgg16(),
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
