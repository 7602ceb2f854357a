"""FrcnnOutput: detections, class by class (Cascade R-CNN: frcnn_output_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of
from sparknet.forks.cascade_rcnn.cascade_boxes import decoded, inside, kept


class FrcnnOutputHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        scores = rows_of(bottoms[0].data)
        priors = rows_of(bottoms[2].data)[:, 1:5]
        deltas = rows_of(bottoms[1].data)
        boxes = decoded(deltas, priors, values["means"], values["stds"])
        high, wide = bottoms[3].data.ravel()[:2]
        rows = [np.array([[0.0] + [-1] * 6])]
        for label in range(1, scores.shape[1]):
            likely = np.flatnonzero(scores[:, label] >= values["conf_thr"])
            likely = likely[np.argsort(-scores[likely, label], kind="stable")]
            own = inside(boxes[likely, label if values["cls_aware"] else 1], high, wide)
            left = kept(own, values["iou_thr"], values["nms_type"], len(own), 1)
            facts = np.stack([np.full(len(left), label), scores[likely[left], label]], 1)
            rows.append(np.concatenate([np.zeros((len(left), 1)), own[left], facts], 1))
        found = np.concatenate(rows)
        most = values["max_det_num"]
        if most and len(found) - 1 > most:
            best = np.sort(np.argsort(-found[1:, 6], kind="stable")[:most] + 1)
            found = found[np.concatenate([[0], best])]
        shape = (len(found), 7, 1, 1)
        if tuple(tops[0].shape) != shape:
            tops[0].reshape(*shape)
        tops[0].data[...] = found.reshape(shape)
