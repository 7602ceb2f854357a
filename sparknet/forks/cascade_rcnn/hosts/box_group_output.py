"""BoxGroupOutput: boxes of groups of anchors (Cascade R-CNN: box_group_output_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.forks.cascade_rcnn.cascade_boxes import inside, kept

Array = np.ndarray[Any, Any]


class BoxGroupOutputHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        groups = [
            self._boxes(bottoms[2 * number].data, bottoms[2 * number + 1].data, number)
            for number in range(len(values["strides"]))
        ]
        rows = []
        for image in range(len(groups[0])):
            boxes = np.concatenate([group[image] for group in groups])
            boxes = boxes[np.argsort(-boxes[:, 4], kind="stable")]
            if values["max_nms_num"]:
                boxes = boxes[: values["max_nms_num"]]
            most = values["max_post_nms_num"] or len(boxes)
            boxes = boxes[kept(boxes, values["iou_thr"], values["nms_type"], most, 1)]
            rows.append(np.concatenate([np.full((len(boxes), 1), image), boxes], 1))
        put_boxes(tops, np.concatenate([np.zeros((0, 6)), *rows]))

    def _boxes(self, scores: Array, deltas: Array, number: int) -> list[Array]:
        """Of each image the boxes that are large and likely enough, with their scores."""
        values = self.node.plan.values
        stride, (heights, widths) = values["strides"][number], values["sizes"][number]
        many, (high, wide) = len(heights), scores.shape[2:]
        images = len(scores) // many
        sizes = np.array([widths, heights], np.float64).T[None, :, :, None, None]
        parts = deltas.reshape(images, many, 4, high, wide).astype(np.float64)
        means, stds = (np.array(values[name]).reshape(4, 1, 1) for name in ("means", "stds"))
        parts = parts * stds + means
        reach, grows = 1 / values["field_xyr"], np.log(values["field_whr"])
        x, y = np.meshgrid(np.arange(wide) + 0.5, np.arange(high) + 0.5)
        middle = np.clip(parts[:, :, :2], -reach, reach) * sizes + np.stack([x, y]) * stride
        size = np.exp(np.clip(parts[:, :, 2:], -grows, grows)) * sizes
        low = middle - size / 2
        boxes = np.concatenate([low, low + size - 1], 2).transpose(0, 1, 3, 4, 2)
        likely = 1 - scores[:, 0].reshape(images, many, high, wide).astype(np.float64)
        found = []
        for image, one in zip(boxes, likely, strict=True):
            own = inside(image.reshape(-1, 4), high * stride, wide * stride)
            large = (own[:, 2:] - own[:, :2] + 1 >= values["min_size"]).all(1)
            chosen = large & (one.ravel() >= values["fg_thr"])
            found.append(np.concatenate([own, one.ravel()[:, None]], 1)[chosen])
        return found


def put_boxes(tops: Sequence[Blob], found: Array) -> None:
    """Rows of image and corners, and with a score; where there is none, the forks have a box of
    their own in the first top, and zeros in the second."""
    rows = (
        [found[:, :5], found] if len(found) else [np.array([[0.0, 1, 1, 10, 10]]), np.zeros((1, 6))]
    )
    for top, values in zip(tops, rows, strict=False):
        shape = (*values.shape, 1, 1)
        if tuple(top.shape) != shape:
            top.reshape(*shape)
        top.data[...] = values.reshape(shape)
