"""BboxAccuracy: overlaps before and after deltas (Cascade R-CNN: bbox_accuracy_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of
from sparknet.errors import LayerError
from sparknet.forks.cascade_rcnn.cascade_boxes import decoded, paired_overlaps

Array = np.ndarray[Any, Any]

TRUE = 0.975
"""A box that overlaps by more is a true box, which was added to the proposals."""


class BboxAccuracyHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        boxes = bottoms[1].data.reshape(-1, 5)[:, 1:].astype(np.float64)
        truth = bottoms[2].data.reshape(-1, 6).astype(np.float64)
        deltas = rows_of(bottoms[0].data)
        used = np.flatnonzero((truth[:, 0] > 0) & (truth[:, 5] <= TRUE))
        labels = truth[used, 0].astype(np.int64)
        if not values["cls_aware"]:
            labels = np.minimum(labels, 1)
        classes = deltas.shape[1] // 4
        for label in labels[(labels < 0) | (labels >= classes)]:
            raise LayerError(
                self.node.name,
                f"BboxAccuracy: a true box is of class {label}; there are deltas of "
                f"{classes} classes",
            )
        after = decoded(deltas[used], boxes[used], values["means"], values["stds"])
        found = (after[np.arange(len(used)), labels], boxes[used])
        for top, some in zip(tops, found, strict=False):
            shared = paired_overlaps(some, truth[used, 1:5])
            top.data[...] = shared.mean() if len(used) else -1
