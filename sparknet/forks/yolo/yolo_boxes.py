"""YOLO's boxes: rows of centre, width and height in shares of the image.

Redmon and Farhadi, 2016 and 2018, as gklz1982/caffe-yolov2 and eric612/MobileNet-YOLO compute them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparknet.forks.faster_rcnn.rpn.boxes import LARGEST
from sparknet.layers.layer import Layer, Shape, shape_text

Array = np.ndarray[Any, Any]
Overlap = Callable[[Array, Array], Array]


def check_map(layer: Layer, shape: Shape, boxes: int, classes: int, values: int = 5) -> None:
    """A map has boxes x (values + classes) channels."""
    if boxes < 1 or classes < 1:
        layer.fail(f"needs at least one box and one class; there are {boxes} and {classes}")
    if len(shape) != 4 or shape[1] != boxes * (values + classes):
        layer.fail(
            f"{boxes} boxes and {classes} classes need N x {boxes * (values + classes)} x H x W; "
            f"the input is {shape_text(shape)}"
        )


def check_biases(layer: Layer, biases: Sequence[float], boxes: int) -> None:
    """Width and height of each anchor."""
    if len(biases) < 2 * boxes or len(biases) % 2:
        layer.fail(
            f"{boxes} anchors need {2 * boxes} biases, or more pairs; there are {len(biases)}"
        )


def sigmoid(x: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-np.clip(x, -80, 80)))
    return found


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    found: Array = e / e.sum(axis, keepdims=True)
    return found


def split(x: Array, boxes: int) -> Array:
    """A map as N x boxes x H x W x values, in double precision."""
    num, channels, high, wide = x.shape
    parts = x.reshape(num, boxes, channels // boxes, high, wide)
    found: Array = parts.transpose(0, 1, 3, 4, 2).astype(np.float64)
    return found


def placed(parts: Array, anchors: Array, scale: float = 1.0) -> Array:
    """The boxes of a map; anchors (boxes x 2) are in cells, or in pixels of `scale` to a cell."""
    _, _, high, wide, _ = parts.shape
    column, row = np.meshgrid(np.arange(wide), np.arange(high))
    size = np.exp(np.minimum(parts[..., 2:4], LARGEST)) * anchors[None, :, None, None]
    return np.stack(
        [
            (column + sigmoid(parts[..., 0])) / wide,
            (row + sigmoid(parts[..., 1])) / high,
            size[..., 0] / (wide * scale),
            size[..., 1] / (high * scale),
        ],
        -1,
    )


def overlap(one: Array, two: Array) -> Array:
    """Intersection over union of boxes that are broadcast against each other."""
    common = [
        np.minimum(one[..., i] + one[..., i + 2] / 2, two[..., i] + two[..., i + 2] / 2)
        - np.maximum(one[..., i] - one[..., i + 2] / 2, two[..., i] - two[..., i + 2] / 2)
        for i in (0, 1)
    ]
    area = np.maximum(common[0], 0) * np.maximum(common[1], 0)
    union = one[..., 2] * one[..., 3] + two[..., 2] * two[..., 3] - area
    found: Array = np.divide(area, union, out=np.zeros_like(area), where=union > 0)
    return found


def suppressed(boxes: Array, threshold: float, overlap: Overlap = overlap) -> Array:
    """Places of the boxes, best first, that overlap no kept one before by the threshold or more."""
    left = np.arange(len(boxes))
    chosen: list[Any] = []
    while len(left):
        first, left = left[0], left[1:]
        chosen.append(first)
        left = left[overlap(boxes[first], boxes[left]) < threshold]
    return np.array(chosen, np.int64)


def detections(found: Sequence[Sequence[Array]], many: int, threshold: float) -> Array:
    """Rows of image, label, score and corners of what survives suppression, image by image.

    `found` has of each map its boxes, their scores, labels and images.
    Where nothing does, a row for each image: its number, then -1.
    """
    boxes, scores, labels, images = (np.concatenate(part) for part in zip(*found, strict=True))
    rows = []
    for image in range(many):
        mine = np.flatnonzero(images == image)
        mine = mine[np.argsort(-scores[mine], kind="stable")]
        mine = mine[suppressed(boxes[mine], threshold)]
        half = boxes[mine, 2:] / 2
        facts = np.stack([np.full(len(mine), image), labels[mine], scores[mine]], 1)
        rows.append(np.concatenate([facts, boxes[mine, :2] - half, boxes[mine, :2] + half], 1))
    shown: Array = np.concatenate([np.zeros((0, 7)), *rows])
    if not len(shown):
        shown = np.full((many, 7), -1.0)
        shown[:, 0] = np.arange(many)
    return shown
