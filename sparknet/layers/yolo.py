"""caffe-yolov2 and MobileNet-YOLO: YOLO's nets of Redmon and Farhadi (2016, 2018) in Caffe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparknet.layers.anchors import LARGEST
from sparknet.layers.host import Blobs, Host, HostBlob
from sparknet.layers.layer import (
    EVERY,
    BoxRows,
    Layer,
    Plan,
    Shape,
    at_least,
    between,
    layer,
    shape_text,
)
from sparknet.layers.pooling import check_image

Array = np.ndarray[Any, Any]
Overlap = Callable[[Array, Array], Array]


def check_map(layer: Layer, shape: Shape, boxes: int, classes: int) -> None:
    """Check that a map has boxes x (5 + classes) channels."""
    if boxes < 1 or classes < 1:
        layer.fail(f"needs at least one box and one class; there are {boxes} and {classes}")
    if len(shape) != 4 or shape[1] != boxes * (5 + classes):
        layer.fail(
            f"{boxes} boxes and {classes} classes need N x {boxes * (5 + classes)} x H x W; "
            f"the input is {shape_text(shape)}"
        )


def check_biases(layer: Layer, biases: Sequence[float], boxes: int) -> None:
    """Width and height of each anchor."""
    if len(biases) < 2 * boxes or len(biases) % 2:
        layer.fail(
            f"{boxes} anchors need {2 * boxes} biases, or more pairs; there are {len(biases)}"
        )


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -80, 80))))


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


def split(x: Array, boxes: int) -> Array:
    """Return a map as N x boxes x H x W x values, in double precision."""
    num, channels, high, wide = x.shape
    parts = x.reshape(num, boxes, channels // boxes, high, wide)
    return np.asarray(parts.transpose(0, 1, 3, 4, 2).astype(np.float64))


def place_boxes(parts: Array, anchors: Array) -> Array:
    """Return the boxes of a map; anchors (boxes x 2) are in cells."""
    _, _, high, wide, _ = parts.shape
    column, row = np.meshgrid(np.arange(wide), np.arange(high))
    size = np.exp(np.minimum(parts[..., 2:4], LARGEST)) * anchors[None, :, None, None]
    return np.stack(
        [
            (column + sigmoid(parts[..., 0])) / wide,
            (row + sigmoid(parts[..., 1])) / high,
            size[..., 0] / wide,
            size[..., 1] / high,
        ],
        -1,
    )


def overlap(one: Array, two: Array) -> Array:
    """Intersection over union of boxes that are broadcast against each other."""
    common = [
        np.minimum(one[..., i] + one[..., i + 2] / 2, two[..., i] + two[..., i + 2] / 2)
        - np.maximum(one[..., i] - one[..., i + 2] / 2, two[..., i] - two[..., i + 2] / 2)
        for i in (0, 1)
    ]
    area = np.maximum(common[0], 0) * np.maximum(common[1], 0)
    union = one[..., 2] * one[..., 3] + two[..., 2] * two[..., 3] - area
    return np.asarray(np.divide(area, union, out=np.zeros_like(area), where=union > 0))


def suppress(boxes: Array, threshold: float, overlap: Overlap = overlap) -> Array:
    """Places of the boxes, best first, that overlap no kept one before by the threshold or more."""
    rest = np.arange(len(boxes))
    indices: list[Any] = []
    while len(rest):
        first, rest = rest[0], rest[1:]
        indices.append(first)
        rest = rest[overlap(boxes[first], boxes[rest]) < threshold]
    return np.array(indices, np.int64)


def detections(maps: Sequence[Sequence[Array]], many: int, threshold: float) -> Array:
    """Return rows of image, label, score and corners after suppression; -1 where none."""
    boxes, scores, labels, images = (np.concatenate(part) for part in zip(*maps, strict=True))
    rows = []
    for image in range(many):
        mine = np.flatnonzero(images == image)
        mine = mine[np.argsort(-scores[mine], kind="stable")]
        mine = mine[suppress(boxes[mine], threshold)]
        half = boxes[mine, 2:] / 2
        facts = np.stack([np.full(len(mine), image), labels[mine], scores[mine]], 1)
        rows.append(np.concatenate([facts, boxes[mine, :2] - half, boxes[mine, :2] + half], 1))
    table: Array = np.concatenate([np.zeros((0, 7)), *rows])
    if not len(table):
        table = np.full((many, 7), -1.0)
        table[:, 0] = np.arange(many)
    return table


@layer("Reorg")
class Reorg(Layer):
    """reorg_layer.cpp of YOLOv2, whose order of values it keeps: it is Darknet's, in which the
    sizes of the input, not of the output, are counted in channels of blocks."""

    field = "reorg_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        num, channels, high, wide = bottom = check_image(self, bottoms[0])
        stride, reverse = self.options.stride, self.options.reverse
        if stride < 1:
            self.fail(f"stride must be positive; it is {stride}")
        if channels % (stride * stride):
            self.fail(
                f"the {channels} channels do not divide by the stride's square, {stride * stride}"
            )
        if not reverse and (high % stride or wide % stride):
            self.fail(f"{high} x {wide} pixels do not divide by the stride {stride}")
        top: Shape = (num, channels * stride**2, high // stride, wide // stride)
        if reverse:
            top = (num, channels // stride**2, high * stride, wide * stride)
        del bottom
        return Plan((top,), values={"stride": stride, "reverse": reverse})


class YoloDetectionOutputHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        anchors = np.array(values["biases"]).reshape(-1, 2)[: values["num_box"]]
        maps = [self._of_map(bottom.data, anchors) for bottom in bottoms]
        many = len(bottoms[0].data)
        show(tops[0], detections(maps, many, values["nms_threshold"]))

    def _of_map(self, values: Any, anchors: Any) -> tuple[Any, Any, Any, Any]:
        parts = split(values, len(anchors))
        classes = softmax(parts[..., 5:], -1)
        scores = sigmoid(parts[..., 4]) * classes.max(-1)
        mask = scores >= self.node.plan.values["confidence_threshold"]
        images = np.broadcast_to(np.arange(len(parts))[:, None, None, None], mask.shape)[mask]
        labels = classes.argmax(-1)[mask] + 1
        return place_boxes(parts, anchors)[mask], scores[mask], labels, images


def show(top: HostBlob, rows: Any) -> None:
    """Give a top the shape and the values of rows."""
    if tuple(top.shape) != (1, 1, *rows.shape):
        top.reshape(1, 1, *rows.shape)
    top.data[...] = rows


@layer("YoloDetectionOutput")
class YoloDetectionOutput(BoxRows):
    """yolo_detection_output_layer.cpp of MobileNet-YOLO: softmax over classes, the best counts.

    The top has rows of image, label (from 1), score, and corners in shares of the image.  The
    number of boxes is known only in the forward pass."""

    host = YoloDetectionOutputHost
    field = "yolo_detection_output_param"
    bottoms = between(1, 2)
    plain_options = EVERY

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for shape in bottoms:
            check_map(self, shape, options.num_box, options.num_classes)
        check_biases(self, options.biases, options.num_box)
        if options.coords != 4:
            self.fail(f"coords must be 4; they are {options.coords}")
        return Plan(((1, 1, 1, 7),))


@layer("Yolov3DetectionOutput")
class Yolov3DetectionOutput(BoxRows):
    """yolov3_detection_output_layer.cpp of MobileNet-YOLO: every class has a score of its own.

    Map i takes the anchors that its part of ``mask`` names; anchors_scale is its pixels to a cell.
    The top has rows of image, label (from 1), score, and corners in shares of the image.  The
    number of boxes is known only in the forward pass."""

    field = "yolov3_detection_output_param"
    bottoms = at_least(1)
    plain_options = EVERY

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        maps = len(bottoms)
        if options.gaussian_box:
            self.fail("gaussian_box is not supported")
        if options.mask_group_num != maps or len(options.anchors_scale) < maps:
            self.fail(
                f"{maps} maps need mask_group_num {maps} and as many anchors_scale; they are "
                f"{options.mask_group_num} and {len(options.anchors_scale)}"
            )
        if len(options.mask) < maps * options.num_box:
            self.fail(f"needs {maps * options.num_box} mask entries; there are {len(options.mask)}")
        for shape in bottoms:
            check_map(self, shape, options.num_box, options.num_classes)
            if shape[0] != bottoms[0][0]:
                self.fail(
                    "the maps must be of one number of images; "
                    f"they are {', '.join(map(shape_text, bottoms))}"
                )
        check_biases(self, options.biases, max(options.mask) + 1)
        if min(options.anchors_scale) < 1:
            self.fail("anchors_scale must be positive")
        return Plan(((1, 1, 1, 7),))
