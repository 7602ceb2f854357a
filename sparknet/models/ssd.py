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
    Permute,
    PriorBox,
    Reshape,
    Softmax,
    TrueBoxes,
)


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
        made: LayerSpec = PriorBox(name, [self.blob, data], clip=False, **options)
        return made


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
    ``keep`` of an image stay.  Other keywords are for the convolutions.
    """
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
    """A convolution whose values are in the order of places, one row for each record."""
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
