"""Yolov3: YOLOv3's loss of one map and what it teaches (MobileNet-YOLO: yolov3_layer.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.errors import LayerError
from sparknet.forks.yolo.hosts.region_loss import cell_of
from sparknet.forks.yolo.yolo_boxes import joined, overlap, placed, sigmoid, split, truths
from sparknet.graph import Node

Array = np.ndarray[Any, Any]


class Yolov3Host(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.learned: Array = np.zeros(0)

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        try:
            self.learned = learned(bottoms[0].data, bottoms[1].data, self.node.plan.values)
        except ValueError as error:
            raise LayerError(self.node.name, f"Yolov3: {error}") from error
        tops[0].data[...] = (self.learned**2).sum() / max(len(self.learned), 1)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        if not propagate_down[0]:
            return
        weight = float(tops[0].diff) / max(len(self.learned), 1)
        delta = self.learned * weight
        if self.node.plan.values["use_logic_gradient"]:
            delta = _through_sigmoids(delta, bottoms[0].data, self.node.plan.values["num"])
        bottoms[0].diff[...] = delta


def _through_sigmoids(delta: Array, x: Array, boxes: int) -> Array:
    """All but widths and heights go through the slope of their sigmoid."""
    parts, own = split(delta, boxes), sigmoid(split(x, boxes))
    own[..., 2:4] = 0.5
    slope = own * (1 - own)
    slope[..., 2:4] = 1
    return joined(parts * slope)


def learned(x: Array, labels: Array, values: Mapping[str, Any]) -> Array:
    """The difference that each value of the map is to lose."""
    anchors = np.array(values["biases"]).reshape(-1, 2)
    mask, scale = list(values["mask"]), values["anchors_scale"]
    parts = split(x, len(mask))
    boxes = placed(parts, anchors[mask], scale)
    delta = np.zeros_like(parts)
    delta[..., 4] = sigmoid(parts[..., 4])
    high, wide = parts.shape[2:4]
    sizes = anchors / (np.array([wide, high]) * scale)
    centred = np.concatenate([np.zeros_like(sizes), sizes], 1)
    for image, rows in enumerate(truths(labels, len(x))):
        for row in rows:
            delta[image, overlap(boxes[image], row[1:]) > values["thresh"], 4] = 0
    for image, rows in enumerate(truths(labels, len(x), end=3)):
        for row in rows:
            cell = cell_of(row, high, wide, values["num_class"])
            alike = overlap(centred, np.array([0, 0, *row[3:]]))
            best = int(alike.argmax())
            answers = [best] if best in mask else []
            answers += [
                n for n in dict.fromkeys(mask) if n != best and alike[n] > values["iou_thresh"]
            ]
            for anchor in answers:
                at = (image, mask.index(anchor), *cell)
                _teach(at, row, parts, delta, anchors[anchor] / scale, values)
    return joined(delta)


def _teach(
    at: tuple[int, int, int, int],
    row: Array,
    parts: Array,
    delta: Array,
    anchor: Array,
    values: Mapping[str, Any],
) -> None:
    """Place, object and class of a box that answers for a true one; small ones count more."""
    high, wide = parts.shape[2:4]
    scale = values["coord_scale"] * (2 - row[3] * row[4])
    place = row[1:3] * [wide, high] - [at[3], at[2]]
    size = np.log(row[3:] * [wide, high] / anchor)
    delta[at][:2] = scale * (sigmoid(parts[at][:2]) - place)
    delta[at][2:4] = scale * (parts[at][2:4] - size)
    objects = sigmoid(parts[at][4]) - 1
    delta[at][4] = objects * (values["object_scale"] if values["use_logic_gradient"] else 1)
    label, smooth = int(row[0]), values["label_smooth_eps"]
    wanted = (np.arange(values["num_class"]) == label) * (1 - smooth) + 0.5 * smooth
    known = delta[at][5:].any() and delta[at][5 + label] != 0
    change = values["class_scale"] * (sigmoid(parts[at][5:]) - wanted)
    if known:  # another true box taught this one before: its other classes stay as they are
        delta[at][5 + label] = change[label]
    else:
        delta[at][5:] = change
