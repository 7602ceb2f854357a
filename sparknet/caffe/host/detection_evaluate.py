"""DetectionEvaluate: detections against true boxes (SSD's Caffe: detection_evaluate_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.loaders.annotated import areas, shared

Array = np.ndarray[Any, Any]


class DetectionEvaluateHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        found = evaluate(
            bottoms[0].data.reshape(-1, 7), bottoms[1].data.reshape(-1, 8), **self.node.plan.values
        )
        if tuple(tops[0].shape) != (1, 1, *found.shape):
            tops[0].reshape(1, 1, *found.shape)
        tops[0].data[...] = found


def evaluate(
    detections: Array,
    truth: Array,
    *,
    num_classes: int,
    background_label_id: int,
    overlap_threshold: float,
    evaluate_difficult_gt: bool,
) -> Array:
    """A row for each class but the background, then one for each detection."""
    truth = truth[(truth[:, 0] >= 0) & (truth[:, 1] != background_label_id)]
    counted = truth if evaluate_difficult_gt else truth[truth[:, 7] == 0]
    rows = [
        (-1, label, np.count_nonzero(counted[:, 1] == label), -1, -1)
        for label in range(num_classes)
        if label != background_label_id
    ]
    detections = detections[(detections[:, 1] != -1) & (detections[:, 0] >= 0)]
    for image in np.unique(detections[:, 0]):
        mine, real = detections[detections[:, 0] == image], truth[truth[:, 0] == image]
        for label in np.unique(mine[:, 1]):
            ours = mine[mine[:, 1] == label]
            ours = ours[np.argsort(-ours[:, 2], kind="stable")]
            rows += _judged(
                ours, real[real[:, 1] == label], overlap_threshold, evaluate_difficult_gt
            )
    return np.array(rows, np.float32).reshape(-1, 5)


def _judged(ours: Array, real: Array, least: float, difficult_too: bool) -> list[Any]:
    """Of detections of one true box the best is right; those of a difficult one may not count."""
    taken = np.zeros(len(real), bool)
    rows = []
    for image, label, score, *box in ours:
        right, wrong = 0, 1
        if len(real):
            boxes = real[:, 3:7]
            common = shared(tuple(box), boxes)
            union = areas(np.array([box])) + areas(boxes) - common
            overlaps = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
            best = int(np.argmax(overlaps))
            if overlaps[best] >= least:
                if not difficult_too and real[best, 7]:
                    wrong = 0
                elif not taken[best]:
                    taken[best], right, wrong = True, 1, 0
        rows.append((image, label, score, right, wrong))
    return rows
