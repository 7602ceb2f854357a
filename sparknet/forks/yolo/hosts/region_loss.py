"""RegionLoss: YOLOv2's loss and what it teaches (region_loss_layer.cpp of caffe-yolov2,
MobileNet-YOLO and Intel's Caffe)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.errors import LayerError
from sparknet.forks.yolo.yolo_boxes import (
    joined,
    overlap,
    overlap_inside,
    placed,
    sigmoid,
    softmax,
    split,
    truths,
)
from sparknet.graph import Node

Array = np.ndarray[Any, Any]
WARM = 12800
"""Images during which caffe-yolov2 draws all boxes to their anchors."""


class RegionLossHost(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.seen = 0
        self.learned: Array = np.zeros(0)

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        self.seen += len(bottoms[0].data)
        warm = values["fork"] == "caffe_yolov2" and self.seen <= WARM
        try:
            self.learned = learned(bottoms[0].data, bottoms[1].data, values, warm)
        except ValueError as error:
            raise LayerError(self.node.name, f"RegionLoss: {error}") from error
        images = len(self.learned) if values["fork"] == "mobilenet_yolo" else 1
        tops[0].data[...] = (self.learned**2).sum() / images

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        if propagate_down[0]:
            weight = float(tops[0].diff) / max(len(self.learned), 1)
            bottoms[0].diff[...] = self.learned * weight


def learned(x: Array, labels: Array, values: Mapping[str, Any], warm: bool) -> Array:
    """The difference that each value of the map is to lose."""
    anchors = np.array(values["biases"]).reshape(-1, 2)[: values["num"]]
    parts = split(x, len(anchors))
    boxes, objects = placed(parts, anchors), sigmoid(parts[..., 4])
    delta = np.zeros_like(parts)
    delta[..., 4] = values["noobject_scale"] * objects * objects * (1 - objects)
    if warm:
        own = sigmoid(parts[..., :2])
        delta[..., :2] = 0.01 * (own - 0.5) * own * (1 - own)
        delta[..., 2:4] = 0.01 * parts[..., 2:4]
    for image, rows in enumerate(truths(labels, len(x))):
        for row in rows:
            near = _alike(values)(boxes[image], row[1:]) > values["thresh"]
            delta[image, near, 4] = 0
    high, wide = parts.shape[2:4]
    for image, rows in enumerate(truths(labels, len(x), end=3)):
        for row in rows:
            cell = cell_of(row, high, wide, values["num_class"])
            at = boxes[image, :, cell[0], cell[1]]
            best = best_anchor(row, anchors / [wide, high], at, values)
            _teach((image, best, *cell), row, at[best], parts, delta, anchors[best], values)
    return joined(delta)


def _alike(values: Mapping[str, Any]) -> Any:
    return overlap_inside if values["fork"] == "caffe_yolov2" else overlap


def cell_of(row: Array, high: int, wide: int, classes: int) -> tuple[int, int]:
    """The row and column of the cell that holds a true box's centre."""
    if not (0 <= row[1] < 1 and 0 <= row[2] < 1 and 0 <= row[0] < classes and (row[3:] > 0).all()):
        told = ", ".join(f"{value:g}" for value in row)
        raise ValueError(f"a true box is ({told}): class, centre, width and height do not fit")
    return int(row[2] * high), int(row[1] * wide)


def best_anchor(row: Array, sizes: Array, boxes: Array, values: Mapping[str, Any]) -> int:
    """The anchor, or the box at the cell, most like a true box in width and height."""
    shapes = sizes if values["bias_match"] else boxes[:, 2:]
    centred = np.concatenate([np.zeros((len(shapes), 2)), shapes], 1)
    return int(_alike(values)(centred, np.array([0, 0, *row[3:]])).argmax())


def _teach(
    at: tuple[int, int, int, int],
    row: Array,
    box: Array,
    parts: Array,
    delta: Array,
    anchor: Array,
    values: Mapping[str, Any],
) -> None:
    """Place, object and class of the box that answers for a true one."""
    high, wide = parts.shape[2:4]
    own, held = sigmoid(parts[at][:2]), sigmoid(parts[at][4])
    place = row[1:3] * [wide, high] - [at[3], at[2]]
    size = np.log(row[3:] * [wide, high] / anchor) - parts[at][2:4]
    scale, slope, wanted = values["coord_scale"], held * (1 - held), 1 - held
    if values["fork"] == "mobilenet_yolo":
        if values["rescore"]:
            wanted = overlap(box, row[1:]) - held
        else:
            scale *= 2 - row[3] * row[4]
    elif values["fork"] == "intel":
        size = np.clip(size, -1, 1)
        wanted = 2 * (1 - held) ** 3
    delta[at][:2] = -scale * (place - own) * own * (1 - own)
    delta[at][2:4] = -scale * size
    delta[at][4] = -values["object_scale"] * wanted * slope
    chosen = np.arange(values["num_class"]) == int(row[0])
    delta[at][5:] = -values["class_scale"] * (chosen - softmax(parts[at][5:], -1))
