"""DetectionEvaluate: detections against true boxes (SSD's Caffe: detection_evaluate_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.batches import blaming
from sparknet.caffe.host.host import Host
from sparknet.errors import LayerError
from sparknet.forks.cascade_rcnn.cascade_boxes import paired_overlaps
from sparknet.forks.ssd.readers.picture_sizes import in_pixels, read_sizes
from sparknet.graph import Node
from sparknet.loaders.annotated import areas, shared

Array = np.ndarray[Any, Any]


class DetectionEvaluateHost(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        path = node.plan.values["sizes"]
        with blaming(node):
            self.sizes = read_sizes(path) if path else []
        self.seen = 0

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        detections, truth = (
            bottom.data.reshape(-1, width) for bottom, width in zip(bottoms, (7, 8), strict=False)
        )
        if values["pixels"]:
            detections = detections[:, [0, 5, 6, 1, 2, 3, 4]]
            truth = truth[:, [0, 5, 6, 1, 2, 3, 4, 7]]
        if self.sizes:
            detections, truth = self._in_pixels(detections, truth, bottoms)
        found = evaluate(
            detections,
            truth,
            bool(self.sizes) or values["pixels"],
            values["num_classes"],
            values["background_label_id"],
            values["overlap_threshold"],
            values["evaluate_difficult_gt"],
        )
        shape = (*found.shape, 1, 1) if values["pixels"] else (1, 1, *found.shape)
        if tuple(tops[0].shape) != shape:
            tops[0].reshape(*shape)
        tops[0].data[...] = found.reshape(shape)

    def _in_pixels(self, detections: Array, truth: Array, bottoms: Sequence[Blob]) -> Any:
        """The boxes in pixels of the next pictures of the list, one for each image."""
        rows = (detections.copy(), truth.copy())
        options = self.node.layer.options
        how = options.resize_param if options.HasField("resize_param") else None
        for image in np.unique(detections[detections[:, 0] >= 0, 0]):
            size = self.sizes[self.seen % len(self.sizes)]
            self.seen += 1
            for some in rows:
                own = some[:, 0] == image
                if self.node.plan.values["pixels"]:
                    some[own, 3:7] *= self._ratio(size, int(image), bottoms[2])
                else:
                    some[own, 3:7] = in_pixels(some[own, 3:7], size, how)
        return rows

    def _ratio(self, size: tuple[int, int], image: int, now: Blob) -> Array:
        sizes = now.data.reshape(-1, 2)
        if image >= len(sizes):
            raise LayerError(
                self.node.name,
                f"DetectionEvaluate: a box is of image {image}; there are {len(sizes)} sizes",
            )
        return np.tile(np.array(size[::-1]) / sizes[image, ::-1], 2)


def evaluate(
    detections: Array,
    truth: Array,
    pixels: bool,
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
            same = real[real[:, 1] == label]
            rows += _judged(ours, same, overlap_threshold, evaluate_difficult_gt, pixels)
    return np.array(rows, np.float32).reshape(-1, 5)


def _judged(ours: Array, real: Array, least: float, difficult_too: bool, pixels: bool) -> list[Any]:
    """Of detections of one true box the best is right; those of a difficult one may not count."""
    taken = np.zeros(len(real), bool)
    rows = []
    for image, label, score, *box in ours:
        right, wrong = 0, 1
        if len(real):
            overlaps = _overlaps(box, real[:, 3:7], pixels)
            best = int(np.argmax(overlaps))
            if overlaps[best] >= least:
                if not difficult_too and real[best, 7]:
                    wrong = 0
                elif not taken[best]:
                    taken[best], right, wrong = True, 1, 0
        rows.append((image, label, score, right, wrong))
    return rows


def _overlaps(box: Any, boxes: Array, pixels: bool) -> Array:
    if pixels:
        return paired_overlaps(np.array([box]), boxes)
    common = shared(tuple(box), boxes)
    union = areas(np.array([box])) + areas(boxes) - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))
