"""What the layers of Cascade R-CNN share: the numbers that deltas are scaled by, decoding, and
which boxes are left.

zhaoweicai/cascade-rcnn: bbox_util.cpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import shown
from sparknet.forks.faster_rcnn.rpn.boxes import LARGEST, suppressed
from sparknet.layers.layer import Layer

Array = np.ndarray[Any, Any]
OVERLAPS = ("IOU", "IOMU", "IOFU")
"""What an overlap is a part of: the union, the smaller box, the first one."""


def scaling(layer: Layer) -> dict[str, tuple[float, ...]]:
    """Values: means and stds of ``bbox_reg_param``, by which deltas are scaled."""
    options = layer.parameter.bbox_reg_param
    means, stds = tuple(options.bbox_mean), tuple(options.bbox_std)
    if not means or not stds:
        return {"means": (0.0,) * 4, "stds": (1.0,) * 4}
    if len(means) != 4 or len(stds) != 4 or min(stds) <= 0:
        layer.fail("bbox_reg_param needs 4 of bbox_mean, and 4 of bbox_std that are positive")
    return {"means": means, "stds": stds}


def check_overlap(layer: Layer, kind: str) -> str:
    if kind not in OVERLAPS:
        layer.fail(f"nms_type '{shown(kind)}' must be one of {', '.join(OVERLAPS)}")
    return kind


def decoded(deltas: Array, priors: Array, means: Any, stds: Any) -> Array:
    """Boxes (N x classes x 4) that deltas (N x 4 classes) make of priors (N x 4)."""
    scaled = deltas.reshape(len(deltas), deltas.shape[1] // 4, 4).astype(np.float64) * stds + means
    sizes = (priors[:, 2:] - priors[:, :2] + 1)[:, None]
    centres = (priors[:, 2:] + priors[:, :2])[:, None] / 2
    middle = scaled[..., :2] * sizes + centres
    size = sizes * np.exp(np.minimum(scaled[..., 2:], LARGEST))
    low = middle - (size - 1) / 2
    return np.concatenate([low, low + size - 1], -1)


def paired_overlaps(one: Array, two: Array) -> Array:
    """The intersection over the union of each box with the one in the same row of the other; a
    box without a size overlaps nothing."""
    sizes = [np.maximum(boxes[..., 2:4] - boxes[..., :2] + 1, 0) for boxes in (one, two)]
    low = np.maximum(one[..., :2], two[..., :2])
    high = np.minimum(one[..., 2:4], two[..., 2:4])
    real = (sizes[0] > 0).all(-1) & (sizes[1] > 0).all(-1)
    common = np.where(real & (low <= high).all(-1), (high - low + 1).prod(-1), 0)
    union = sizes[0].prod(-1) + sizes[1].prod(-1) - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))


def inside(boxes: Array, high: float, wide: float) -> Array:
    """Boxes that begin at 0 at least and end at the image's size at most: a pixel further than its
    last one, and one that lies outside ends before it begins."""
    most = np.array([wide, high])
    return np.concatenate([np.maximum(boxes[..., :2], 0), np.minimum(boxes[..., 2:4], most)], -1)


def kept(boxes: Array, threshold: float, kind: str, most: int, pixel: int) -> Array:
    """Places of the boxes that are left, by one of the fork's overlaps.

    ``pixel`` is 1 where a box reaches to the end of its last pixel, as FrcnnOutput has it, else 0.
    """
    low, high = boxes[:, :2], boxes[:, 2:4]
    area = np.where((low <= high).all(1), (high - low + pixel).prod(1), 0)

    def share(first: int, left: Array) -> Array:
        sides = np.minimum(high[first], high[left]) - np.maximum(low[first], low[left])
        # Boxes that touch in one column overlap there; in one row they do not.
        meet = (sides[:, 0] >= 0) & (sides[:, 1] > 0) & (area[first] > 0) & (area[left] > 0)
        common = np.where(meet, (sides + pixel).prod(1), 0)
        whole = {
            "IOU": area[first] + area[left] - common,
            "IOMU": np.minimum(area[first], area[left]),
            "IOFU": np.broadcast_to(area[first], common.shape),
        }[kind]
        return np.asarray(np.divide(common, whole, out=np.zeros_like(common), where=whole > 0))

    return suppressed(len(boxes), threshold, most, share)
