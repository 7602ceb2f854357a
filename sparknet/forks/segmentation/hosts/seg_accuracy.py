"""SegAccuracy: a confusion matrix of pixels (DeepLab, PSPNet: seg_accuracy_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.classes import class_numbers
from sparknet.caffe.host.host import Host
from sparknet.graph import Node


class SegAccuracyHost(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.counts: Any = None

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values, scores = self.node.plan.values, bottoms[0].data
        classes = scores.shape[1]
        if self.counts is None or values["reset"] or len(self.counts) != classes:
            self.counts = np.zeros((classes, classes), np.int64)
        labels = bottoms[1].data[:, 0]
        counted = ~np.isin(np.trunc(labels), values["ignored"])
        real = class_numbers(self.node, labels[counted], classes)
        # Of equal scores the later class counts, as there.
        told = classes - 1 - scores[:, ::-1].argmax(1)[counted]
        self.counts += np.bincount(real * classes + told, minlength=classes**2).reshape(
            classes, classes
        )
        tops[0].data[...] = [[[figures(self.counts)]]]


def figures(counts: Any) -> tuple[float, float, float]:
    """Pixel accuracy, its mean over classes, and mean intersection over union; a class that neither
    occurs nor is told counts as 1 there, as in the fork."""
    right, rows, union = np.diag(counts), counts.sum(1), counts.sum(1) + counts.sum(0)
    union = union - right
    seen = rows > 0
    share = right[seen] / rows[seen]
    overlap = np.where(union > 0, right / np.maximum(union, 1), 1.0)
    accuracy = right.sum() / max(int(rows.sum()), 1)
    return float(accuracy), float(share.mean()) if seen.any() else 0.0, float(overlap.mean())
