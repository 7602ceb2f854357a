"""Yolov3DetectionOutput: boxes of YOLOv3's maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.yolo_detection_output import show
from sparknet.layers.yolo_boxes import detections, placed, sigmoid, split


class Yolov3DetectionOutputHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        anchors, each = np.array(values["biases"]).reshape(-1, 2), values["num_box"]
        columns = []
        for number, bottom in enumerate(bottoms):
            parts = split(bottom.data, each)
            mask = list(values["mask"][number * each : (number + 1) * each])
            boxes = placed(parts, anchors[mask], values["anchors_scale"][number])
            scores = sigmoid(parts[..., 5:]) * sigmoid(parts[..., 4:5])
            images, box, y, x, label = np.nonzero(scores > values["confidence_threshold"])
            chosen = scores[images, box, y, x, label]
            columns.append((boxes[images, box, y, x], chosen, label + 1, images))
        show(tops[0], detections(columns, len(bottoms[0].data), values["nms_threshold"]))
