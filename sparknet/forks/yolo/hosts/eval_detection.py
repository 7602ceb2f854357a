"""EvalDetection: which of YOLOv2's boxes are right (caffe-yolov2: eval_detection_layer.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.forks.yolo.yolo_boxes import (
    overlap_inside,
    placed,
    sigmoid,
    softmax,
    split,
    suppressed,
    truths,
)

Array = np.ndarray[Any, Any]
LEAST = 0.005
"""Boxes with a lower score are left out after the suppression."""


class EvalDetectionHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        anchors = np.array(values["biases"]).reshape(-1, 2)[: values["num_object"]]
        parts = split(bottoms[0].data, len(anchors)).transpose(0, 2, 3, 1, 4)
        boxes = placed(parts.transpose(0, 3, 1, 2, 4), anchors).transpose(0, 2, 3, 1, 4)
        top = tops[0].data
        top[...] = 0
        for image, real in enumerate(truths(bottoms[1].data, len(parts))):
            for label in real[:, 0].astype(int):
                if 0 <= label < values["num_class"]:
                    top[image, label] += 1
            rows = judged(parts[image], boxes[image], real, values)
            top[image, values["num_class"] : values["num_class"] + rows.size] = rows.ravel()


def judged(parts: Array, boxes: Array, real: Array, values: Mapping[str, Any]) -> Array:
    """Rows of class, score, right and wrong, class by class."""
    classes = softmax(parts[..., 5:], -1).reshape(-1, values["num_class"])
    objects, flat = sigmoid(parts[..., 4]).ravel(), boxes.reshape(-1, 4)
    kinds = {"obj": objects, "prob": classes.max(1), "multiply": objects * classes.max(1)}
    scores, labels = kinds[values["score_type"]], classes.argmax(1)
    order = np.argsort(-scores, kind="stable") if values["nms"] >= 0 else np.arange(0)
    order = order[suppressed(flat[order], values["nms"], overlap_inside)]
    order = order[scores[order] >= LEAST]
    rows: list[tuple[float, float, int, int]] = []
    for label in np.unique(labels[order]):
        theirs = real[real[:, 0] == label, 1:]
        taken = np.zeros(len(theirs), bool)
        for place in order[labels[order] == label]:
            right, wrong = 0, int(not len(theirs))
            if len(theirs):
                near = overlap_inside(theirs, flat[place])
                best = int(near.argmax())
                if near[best] >= values["threshold"]:
                    right, wrong = int(not taken[best]), int(taken[best])
                    taken[best] = True
            rows.append((label, scores[place], right, wrong))
    return np.array(rows, np.float32).reshape(-1, 4)
