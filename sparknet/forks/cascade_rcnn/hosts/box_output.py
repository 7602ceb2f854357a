"""BoxOutput: boxes of fields (MS-CNN: box_output_layer.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.forks.cascade_rcnn.cascade_boxes import kept
from sparknet.forks.cascade_rcnn.hosts.box_group_output import put_boxes

Array = np.ndarray[Any, Any]


class BoxOutputHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        fields = [
            found_boxes(bottom.data.astype(np.float64), number, values)
            for number, bottom in enumerate(bottoms)
        ]
        rows = []
        for image in range(len(fields[0])):
            boxes = np.concatenate([field[image] for field in fields])
            # Of equal scores the fork takes the later one first.
            boxes = boxes[np.lexsort((-np.arange(len(boxes)), -boxes[:, 4]))]
            if values["max_nms_num"]:
                boxes = boxes[: values["max_nms_num"]]
            most = values["max_post_nms_num"] or len(boxes)
            boxes = boxes[kept(boxes, values["iou_thr"], values["nms_type"], most, 0)]
            rows.append(np.concatenate([np.full((len(boxes), 1), image), boxes], 1))
        put_boxes(tops, np.concatenate([np.zeros((0, 6)), *rows]))


def found_boxes(predicted: Array, number: int, values: Mapping[str, Any]) -> list[Array]:
    """Of each image the boxes that are large and likely enough: corners and score."""
    stride, size = values["strides"][number], np.array(values["sizes"][number], np.float64)
    scores, deltas = np.split(predicted, [predicted.shape[1] - 4], 1)
    high, wide = predicted.shape[2:]
    means, stds = (np.array(values[name]).reshape(4, 1, 1) for name in ("means", "stds"))
    parts = deltas * stds + means
    reach, grows = 1 / values["field_xyr"], abs(np.log(values["field_whr"]))
    x, y = np.meshgrid(np.arange(wide) + 0.5, np.arange(high) + 0.5)
    size = size[:, None, None]
    middle = np.clip(parts[:, :2], -reach, reach) * size + np.stack([x, y]) * stride
    extent = np.exp(np.clip(parts[:, 2:], -grows, grows)) * size
    low = np.maximum(middle - extent / 2, 0)
    extent = np.minimum(extent, np.array([wide, high])[:, None, None] * stride - low)
    likely = scores[:, 1:].max(1) - scores[:, 0]
    chosen = (extent >= values["min_size"]).all(1) & (likely >= values["fg_thr"])
    rows = np.concatenate([low, low + extent, likely[:, None]], 1).transpose(0, 2, 3, 1)
    return [own[mask] for own, mask in zip(rows, chosen, strict=True)]
