"""YoloDetectionOutput: boxes of YOLOv2's maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.forks.yolo.yolo_boxes import detections, placed, sigmoid, softmax, split


class YoloDetectionOutputHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        anchors = np.array(values["biases"]).reshape(-1, 2)[: values["num_box"]]
        found = [self._of_map(bottom.data, anchors) for bottom in bottoms]
        many = len(bottoms[0].data)
        show(tops[0], detections(found, many, values["nms_threshold"]))

    def _of_map(self, values: Any, anchors: Any) -> tuple[Any, Any, Any, Any]:
        parts = split(values, len(anchors))
        classes = softmax(parts[..., 5:], -1)
        scores = sigmoid(parts[..., 4]) * classes.max(-1)
        kept = scores >= self.node.plan.values["confidence_threshold"]
        images = np.broadcast_to(np.arange(len(parts))[:, None, None, None], kept.shape)[kept]
        labels = classes.argmax(-1)[kept] + 1
        return placed(parts, anchors)[kept], scores[kept], labels, images


def show(top: Blob, rows: Any) -> None:
    """A top takes the shape and the values of rows."""
    if tuple(top.shape) != (1, 1, *rows.shape):
        top.reshape(1, 1, *rows.shape)
    top.data[...] = rows
