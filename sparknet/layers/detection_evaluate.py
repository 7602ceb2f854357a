"""DetectionEvaluate: counts of right and wrong boxes (SSD); average precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.errors import FileError, LayerError, SolverError, clean
from sparknet.layers.cascade_rcnn import paired_overlaps
from sparknet.layers.host import Blobs, Host, HostBlob, HostNode, blaming
from sparknet.layers.layer import (
    EVERY,
    Layer,
    Plan,
    Shape,
    between,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.loaders.annotated import areas, shared
from sparknet.loaders.image_decoding import numbered_lines
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import exists
from sparknet.proto.untrusted import check_trusted

Array = np.ndarray[Any, Any]
Size = tuple[int, int]


def read_sizes(path: str) -> list[Size]:
    """Height and width of each line `name height width`."""
    sizes = []
    for number, line in numbered_lines(path):
        words = line.split()
        try:
            high, wide = (int(word) for word in words[1:])
        except ValueError:
            high = wide = 0
        if high < 1 or wide < 1:
            raise FileError(path, f"line {number} is no name with a height and a width")
        sizes.append((high, wide))
    if not sizes:
        raise FileError(path, "holds no size")
    return sizes


def in_pixels(boxes: Array, size: Size, how: caffe_pb2.ResizeParameter | None) -> Array:
    """Boxes of a resized picture, in shares of its sides, as pixels of the picture itself."""
    high, wide = size
    corners = boxes.astype(np.float64)
    modes = caffe_pb2.ResizeParameter
    if how is not None and how.resize_mode == modes.FIT_LARGE_SIZE_AND_PAD:
        aspect = wide / high
        empty = (
            max(1 - how.width / aspect / how.height, 0),
            max(1 - how.height * aspect / how.width, 0),
        )
        for side, share in ((1, empty[0]), (0, empty[1])):
            corners[:, side::2] = (corners[:, side::2] - share / 2) / (1 - share)
    elif (
        how is not None
        and how.resize_mode == modes.FIT_SMALL_SIZE
        and how.height_scale
        and how.width_scale
    ):
        corners *= [how.width_scale, how.height_scale] * 2
        return np.clip(corners, 0, [wide, high] * 2)
    return np.asarray(np.clip(corners, 0, 1) * ([wide, high] * 2))


VERSIONS = ("Integral", "11point", "MaxIntegral")
"""Every detection counts by its precision; the eleven recalls of VOC 2007; VOC 2012."""


def mean_average_precision(batches: Sequence[Array], version: str = "Integral") -> float:
    """Return the mean over classes of the average precision over all batches, each N x 5 rows."""
    precisions = average_precisions(batches, version)
    return float(np.mean(list(precisions.values()))) if precisions else 0.0


def average_precisions(batches: Sequence[Array], version: str = "Integral") -> dict[int, float]:
    """Return the average precision of each class; 0 where it has no true box or no detection."""
    if version not in VERSIONS:
        raise SolverError(f"unknown ap_version '{version}': it is one of {', '.join(VERSIONS)}")
    rows = np.concatenate([np.reshape(batch, (-1, 5)) for batch in batches])
    heads, detections = rows[rows[:, 0] == -1], rows[rows[:, 0] != -1]
    return {
        int(label): _precision(
            detections[detections[:, 1] == label], heads[heads[:, 1] == label, 2].sum(), version
        )
        for label in np.unique(heads[:, 1])
    }


def _precision(rows: Array, real: float, version: str) -> float:
    # A row that is neither right nor wrong, of a difficult box, does not count.
    rows = rows[(rows[:, 3] != 0) | (rows[:, 4] != 0)]
    rows = rows[np.argsort(-rows[:, 2], kind="stable")]
    if not len(rows) or not real:
        return 0.0
    right = np.cumsum(rows[:, 3], dtype=np.float64)
    precision, recall = right / np.arange(1, len(rows) + 1), right / real
    if version == "Integral":
        gained = np.diff(recall, prepend=0)
        return float((precision * gained).sum())
    best = np.maximum.accumulate(precision[::-1])[::-1]
    if version == "11point":
        reached = [recall >= level / 10 for level in range(11)]
        return float(np.mean([best[at].max() if at.any() else 0 for at in reached]))
    return float((best * np.diff(recall, prepend=0)).sum())


class DetectionEvaluateHost(Host):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        path = node.plan.values["sizes"]
        with blaming(node):
            self.sizes = read_sizes(path) if path else []
        self.seen = 0

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        detections, truth = (
            bottom.data.reshape(-1, width) for bottom, width in zip(bottoms, (7, 8), strict=False)
        )
        if values["pixels"]:
            detections = detections[:, [0, 5, 6, 1, 2, 3, 4]]
            truth = truth[:, [0, 5, 6, 1, 2, 3, 4, 7]]
        if self.sizes:
            detections, truth = self._in_pixels(detections, truth, bottoms)
        counts = evaluate(
            detections,
            truth,
            bool(self.sizes) or values["pixels"],
            values["num_classes"],
            values["background_label_id"],
            values["overlap_threshold"],
            values["evaluate_difficult_gt"],
        )
        shape = (*counts.shape, 1, 1) if values["pixels"] else (1, 1, *counts.shape)
        if tuple(tops[0].shape) != shape:
            tops[0].reshape(*shape)
        tops[0].data[...] = counts.reshape(shape)

    def _in_pixels(self, detections: Array, truth: Array, bottoms: Blobs) -> Any:
        """Return the boxes in pixels of the next pictures of the list, one for each image."""
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

    def _ratio(self, size: tuple[int, int], image: int, now: HostBlob) -> Array:
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
    """Return a row for each class but the background, then one for each detection."""
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
            rows += _judge(ours, same, overlap_threshold, evaluate_difficult_gt, pixels)
    return np.array(rows, np.float32).reshape(-1, 5)


def _judge(ours: Array, real: Array, least: float, difficult_too: bool, pixels: bool) -> list[Any]:
    """Mark the best detection of a true box as right; those of a difficult one may not count."""
    matched = np.zeros(len(real), bool)
    rows = []
    for image, label, score, *box in ours:
        right, wrong = 0, 1
        if len(real):
            overlaps = _overlaps(box, real[:, 3:7], pixels)
            best = int(np.argmax(overlaps))
            if overlaps[best] >= least:
                if not difficult_too and real[best, 7]:
                    wrong = 0
                elif not matched[best]:
                    matched[best], right, wrong = True, 1, 0
        rows.append((image, label, score, right, wrong))
    return rows


def _overlaps(box: Any, boxes: Array, pixels: bool) -> Array:
    if pixels:
        return paired_overlaps(np.array([box]), boxes)
    common = shared(tuple(box), boxes)
    union = areas(np.array([box])) + areas(boxes) - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))


@layer("DetectionEvaluate")
class DetectionEvaluate(Layer):
    """detection_evaluate_layer.cpp of SSD; bottoms: detections, and the rows of true boxes.

    The top has a row (-1, label, number of true boxes, -1, -1) for each class, and a row
    (image, label, score, right, wrong) for each detection; ``Net.test`` and the solver make
    mean average precision of them.  The number of detections is known only in the forward pass.
    With a name_size_file boxes are compared in pixels of the pictures that it lists in their order.

    Cascade R-CNN's layer has a third bottom, the height and width of each picture (N x 2); its
    detections are rows of image, corners, label and score, its true boxes rows of image, corners,
    label, ignored and difficult, both in pixels, and the top is M x 5 x 1 x 1."""

    host = DetectionEvaluateHost
    field = "detection_evaluate_param"
    bottoms = between(2, 3)
    has_gradient = False
    has_dynamic_tops = True
    compares_labels = True
    summary = staticmethod(mean_average_precision)
    plain_options = EVERY

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.num_classes < 1:
            self.fail("needs num_classes")
        if not options.overlap_threshold > 0:
            self.fail(f"overlap_threshold must be positive; it is {options.overlap_threshold:g}")
        self._check_how()
        values = {"sizes": options.name_size_file or None, "pixels": len(bottoms) > 2}
        counted = options.background_label_id < options.num_classes
        rows = options.num_classes - int(counted)
        if len(bottoms) > 2:
            self._check_pixels(bottoms)
            return Plan(((rows + bottoms[0][0], 5, 1, 1),), values=values)
        for name, shape, width in zip(("detections", "true boxes"), bottoms, (7, 8), strict=True):
            if len(shape) != 4 or shape[:2] != (1, 1) or shape[3] != width:
                self.fail(f"the {name} must be 1 x 1 x N x {width}; they are {shape_text(shape)}")
        return Plan(((1, 1, rows + bottoms[0][2], 5),), values=values)

    def _check_pixels(self, bottoms: Sequence[Shape]) -> None:
        names = ("detections", "true boxes", "sizes")
        for name, shape, width in zip(names, bottoms, (7, 8, 2), strict=True):
            if not shape or legacy_shape(self, shape, name)[1:] != (width, 1, 1):
                self.fail(f"the {name} must be N x {width}; they are {shape_text(shape)}")

    def _check_how(self) -> None:
        options = self.options
        how = options.resize_param
        if options.HasField("resize_param") and (how.height < 1 or how.width < 1):
            self.fail(f"resize_param needs height and width; they are {how.height}, {how.width}")
        if options.name_size_file:
            path = options.name_size_file
            check_trusted(self.parameter, f"to read the sizes '{clean(path)}'")
            if not exists(path):
                self.fail(f"the name_size_file '{clean(path)}' is no file")
