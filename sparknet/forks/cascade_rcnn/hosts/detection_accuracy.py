"""DetectionAccuracy: right classes and fitting boxes (MS-CNN: detection_accuracy_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.forks.cascade_rcnn.cascade_boxes import paired_overlaps
from sparknet.forks.cascade_rcnn.hosts.anchor_maps import boxes_of, true_boxes
from sparknet.forks.cascade_rcnn.hosts.detection_group_accuracy import share


class DetectionAccuracyHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        predicted, labels = (bottom.data.astype(np.float64) for bottom in bottoms)
        scores, deltas = np.split(predicted, [values["classes"]], 1)
        classes = labels[:, 0].astype(np.int64)
        judged = np.minimum(classes, 1) if values["objectness"] else classes
        counted = (judged != 0) | (labels[:, 5] < values["bg_threshold"])
        learned = classes != 0
        ignored = values["ignore_label"]
        if ignored is not None:
            counted &= judged != ignored
            learned &= classes != ignored
        best = np.argsort(-scores, 1, kind="stable")[:, : values["top_k"]]
        right = (best == judged[:, None]).any(1)
        tops[0].data[...] = [[[[share(right[counted]), share(right[counted & (judged != 0)])]]]]
        if len(tops) > 1:
            found = boxes_of(deltas, values)[learned]
            real = true_boxes(labels)[learned]
            tops[1].data[...] = share(paired_overlaps(found, real))
