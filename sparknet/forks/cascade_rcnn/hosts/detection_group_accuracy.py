"""DetectionGroupAccuracy: right classes and fitting boxes among anchors (Cascade R-CNN:
detection_group_accuracy_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.forks.cascade_rcnn.cascade_boxes import paired_overlaps
from sparknet.forks.cascade_rcnn.hosts.anchor_maps import boxes_of, true_boxes

Array = np.ndarray[Any, Any]


class DetectionGroupAccuracyHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        scores, deltas, labels = (bottom.data for bottom in bottoms)
        classes = labels[:, 0].astype(np.int64)
        judged = np.minimum(classes, 1) if values["objectness"] else classes
        counted = (judged != 0) | (labels[:, 5] < values["bg_threshold"])
        learned = classes != 0
        ignored = values["ignore_label"]
        if ignored is not None:
            counted &= judged != ignored
            learned &= classes != ignored
        right = scores.argmax(1) == judged
        tops[0].data[...] = [[[[share(right[counted]), share(right[counted & (judged != 0)])]]]]
        if len(tops) > 1:
            found = boxes_of(deltas.astype(np.float64), values)[learned]
            real = true_boxes(labels.astype(np.float64))[learned]
            tops[1].data[...] = share(paired_overlaps(found, real))


def share(some: Array) -> float:
    return float(some.mean()) if some.size else -1.0
