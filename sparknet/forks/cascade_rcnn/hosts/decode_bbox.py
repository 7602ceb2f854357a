"""DecodeBBox: boxes moved by their deltas (Cascade R-CNN: decode_bbox_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of
from sparknet.errors import LayerError
from sparknet.forks.cascade_rcnn.cascade_boxes import decoded


class DecodeBBoxHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        rows = bottoms[1].data.reshape(-1, 5)
        deltas = bottoms[0].data.reshape(-1, 8)
        boxes = decoded(deltas, rows[:, 1:], values["means"], values["stds"])[:, 1]
        kept = np.ones(len(boxes), bool)
        if values["train"]:
            kept &= (boxes[:, :2] <= boxes[:, 2:]).all(1)
            if len(bottoms) > 2:
                truth = rows_of(bottoms[2].data)
                kept &= truth[:, -1] < values["gt_iou_thr"]
        if not kept.any():
            raise LayerError(self.node.name, "DecodeBBox: no box is left")
        shape = (int(kept.sum()), *tuple(tops[0].shape)[1:])
        if tuple(tops[0].shape) != shape:
            tops[0].reshape(*shape)
        tops[0].data[...] = np.concatenate([rows[kept, :1], boxes[kept]], 1).reshape(shape)
