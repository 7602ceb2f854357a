"""DetectionAccuracy: right classes and fitting boxes (MS-CNN: detection_accuracy_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.forks.cascade_rcnn.hosts.detection_group_accuracy import (
    places,
    put_overlaps,
    put_shares,
)


class DetectionAccuracyHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        predicted, labels = (bottom.data.astype(np.float64) for bottom in bottoms)
        scores, deltas = np.split(predicted, [values["classes"]], 1)
        judged, counted, learned = places(labels, values)
        best = np.argsort(-scores, 1, kind="stable")[:, : values["top_k"]]
        right = (best == judged[:, None]).any(1)
        put_shares(tops, right, judged, counted)
        if len(tops) > 1:
            put_overlaps(tops[1], deltas, labels, learned, values)
