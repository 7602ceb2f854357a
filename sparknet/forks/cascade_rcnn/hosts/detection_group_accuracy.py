"""DetectionGroupAccuracy: right classes and fitting boxes among anchors (Cascade R-CNN:
detection_group_accuracy_layer.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        scores, deltas, labels = (bottom.data.astype(np.float64) for bottom in bottoms)
        judged, counted, learned = places(labels, values)
        put_shares(tops, scores.argmax(1) == judged, judged, counted)
        if len(tops) > 1:
            put_overlaps(tops[1], deltas, labels, learned, values)


def places(labels: Array, values: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """The classes that scores are judged by, the places that count, and those with a box."""
    classes = labels[:, 0].astype(np.int64)
    judged = np.minimum(classes, 1) if values["objectness"] else classes
    counted = (judged != 0) | (labels[:, 5] < values["bg_threshold"])
    learned = classes != 0
    ignored = values["ignore_label"]
    if ignored is not None:
        counted &= judged != ignored
        learned &= classes != ignored
    return judged, counted, learned


def put_shares(tops: Sequence[Blob], right: Array, judged: Array, counted: Array) -> None:
    """How many are right, of all places that count and of those with an object."""
    tops[0].data[...] = [[[[_share(right[counted]), _share(right[counted & (judged != 0)])]]]]


def put_overlaps(
    top: Blob, deltas: Array, labels: Array, learned: Array, values: Mapping[str, Any]
) -> None:
    """The mean overlap of the boxes with the true ones."""
    found, real = boxes_of(deltas, values)[learned], true_boxes(labels)[learned]
    top.data[...] = _share(paired_overlaps(found, real))


def _share(some: Array) -> float:
    return float(some.mean()) if some.size else -1.0
