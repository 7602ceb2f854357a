"""MS-CNN (Cai et al., 2016): BoxOutput; Cascade R-CNN's BoxGroupOutput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparknet.layers.anchors import best
from sparknet.layers.cascade_rcnn import check_overlap, inside, nms, scaling
from sparknet.layers.host import Blobs, Host, put_rows
from sparknet.layers.layer import (
    EVERY,
    BoxRows,
    Plan,
    Shape,
    at_least,
    between,
    count,
    layer,
    shape_text,
)

Array = np.ndarray[Any, Any]


Fields = Sequence[Array]
"""For each image rows of corners and score."""


def put_best(tops: Blobs, fields: Sequence[Fields], values: Mapping[str, Any], pixel: int) -> None:
    """Fill the tops with the best boxes of each image; without one, with the forks' own row."""
    rows = [np.zeros((0, 6))]
    suppress = partial(nms, threshold=values["iou_thr"], kind=values["nms_type"], pixel=pixel)
    for number, image in enumerate(zip(*fields, strict=True)):
        boxes = np.concatenate(image)
        places = best(
            boxes, boxes[:, 4], values["max_nms_num"], values["max_post_nms_num"], suppress
        )
        rows.append(np.concatenate([np.full((len(places), 1), number), boxes[places]], 1))
    boxes = np.concatenate(rows)
    parts = [boxes[:, :5], boxes]
    if not len(boxes):
        parts = [np.array([[0.0, 1, 1, 10, 10]]), np.zeros((1, 6))]
    for top, part in zip(tops, parts, strict=False):
        put_rows(top, part)


def decode(
    deltas: Array, sizes: Array, stride: int, values: Mapping[str, Any]
) -> tuple[Array, Array]:
    """Return the low corners and the sizes (N x anchors x 2 x H x W) of the boxes of a field.

    `deltas` are N x anchors x 4 x H x W, `sizes` the width and height of each anchor."""
    high, wide = deltas.shape[3:]
    means, stds = (np.array(values[name]).reshape(4, 1, 1) for name in ("means", "stds"))
    parts = deltas.astype(np.float64) * stds + means
    reach, grows = 1 / values["field_xyr"], abs(np.log(values["field_whr"]))
    x, y = np.meshgrid(np.arange(wide) + 0.5, np.arange(high) + 0.5)
    anchors = sizes[None, :, :, None, None]
    middle = np.clip(parts[:, :, :2], -reach, reach) * anchors + np.stack([x, y]) * stride
    extent = np.exp(np.clip(parts[:, :, 2:], -grows, grows)) * anchors
    return middle - extent / 2, extent


class BoxGroupOutputHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        pairs = zip(bottoms[::2], bottoms[1::2], strict=True)
        groups = [self._boxes(one.data, two.data, n) for n, (one, two) in enumerate(pairs)]
        put_best(tops, groups, values, 1)

    def _boxes(self, scores: Array, deltas: Array, number: int) -> list[Array]:
        """Return each image's boxes that are large and likely enough, with their scores."""
        values = self.node.plan.values
        stride, (heights, widths) = values["strides"][number], values["sizes"][number]
        many, (high, wide) = len(heights), scores.shape[2:]
        sizes = np.array([widths, heights], np.float64).T
        low, extent = decode(deltas.reshape(-1, many, 4, high, wide), sizes, stride, values)
        boxes = np.concatenate([low, low + extent - 1], 2).transpose(0, 1, 3, 4, 2)
        likely = 1 - scores[:, 0].reshape(-1, many * high * wide).astype(np.float64)
        boxes_by_image = []
        for image, one in zip(boxes, likely, strict=True):
            own = inside(image.reshape(-1, 4), high * stride, wide * stride)
            large = (own[:, 2:] - own[:, :2] + 1 >= values["min_size"]).all(1)
            mask = large & (one >= values["fg_thr"])
            boxes_by_image.append(np.concatenate([own, one[:, None]], 1)[mask])
        return boxes_by_image


@layer("BoxGroupOutput")
class BoxGroupOutput(BoxRows):
    """box_group_output_layer.cpp; bottoms: for each group of anchors, scores and deltas.

    Items of the scores are image by image, and in each image anchor by anchor; class 0 is the
    background.  Boxes end at the image's size at most, one pixel after its last.  Top 0 has rows
    (image, x1, y1, x2, y2), top 1 the score too.  nms_type and the rows without a box are
    BoxOutput's.  The number of boxes is known only in the forward pass."""

    host = BoxGroupOutputHost
    field = "box_group_output_param"
    fields = ("bbox_reg_param",)
    bottoms = at_least(2)
    tops = between(1, 2)
    plain_options = EVERY

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        groups = list(options.box_group_param)
        if len(bottoms) != 2 * len(groups):
            self.fail(
                f"{len(groups)} box_group_param need twice as many bottoms, not {len(bottoms)}"
            )
        if not (options.field_whr > 0 and options.field_xyr > 0):
            self.fail("field_whr and field_xyr must be positive")
        for number, group in enumerate(groups):
            scores, deltas = bottoms[2 * number : 2 * number + 2]
            many = len(group.field_h)
            if not many or many != len(group.field_w) or group.stride < 1:
                self.fail(f"box_group_param {number} needs a stride, and field_h for each field_w")
            fits = len(scores) == len(deltas) == 4 and scores[0] == deltas[0]
            fits = fits and count(scores[1:]) > 0
            if not fits or scores[0] % many or deltas != (scores[0], 4, *scores[2:]):
                self.fail(
                    f"group {number} of {many} anchors cannot have scores {shape_text(scores)} "
                    f"and deltas {shape_text(deltas)}"
                )
            images = bottoms[0][0] // len(groups[0].field_h)
            if scores[0] // many != images:
                self.fail(
                    f"group {number} has {scores[0] // many} images, and group 0 has {images}"
                )
        values = {
            "nms_type": check_overlap(self, options.nms_type),
            "strides": tuple(group.stride for group in groups),
            "sizes": tuple((tuple(g.field_h), tuple(g.field_w)) for g in groups),
            **scaling(self),
        }
        return Plan(((1, 5, 1, 1), (1, 6, 1, 1))[: len(self.parameter.top)], values=values)


class BoxOutputHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        fields = [self._boxes(bottom.data, number) for number, bottom in enumerate(bottoms)]
        put_best(tops, fields[::-1], values, 0)

    def _boxes(self, predicted: Array, number: int) -> list[Array]:
        """Return each image's large and likely boxes, last first, as ties go."""
        values = self.node.plan.values
        stride, sizes = values["strides"][number], np.array([values["sizes"][number]], np.float64)
        scores, deltas = np.split(predicted.astype(np.float64), [predicted.shape[1] - 4], 1)
        high, wide = predicted.shape[2:]
        low, extent = (part[:, 0] for part in decode(deltas[:, None], sizes, stride, values))
        low = np.maximum(low, 0)
        extent = np.minimum(extent, np.array([wide, high])[:, None, None] * stride - low)
        likely = scores[:, 1:].max(1) - scores[:, 0]
        mask = (extent >= values["min_size"]).all(1) & (likely >= values["fg_thr"])
        rows = np.concatenate([low, low + extent, likely[:, None]], 1).transpose(0, 2, 3, 1)
        return [own[mask][::-1] for own, mask in zip(rows, mask, strict=True)]


@layer("BoxOutput")
class BoxOutput(BoxRows):
    """box_output_layer.cpp of MS-CNN; each bottom (N x (classes + 4) x H x W) has the scores and
    deltas of one field at every place.

    Top 0 has rows (image, x1, y1, x2, y2), top 1 the score too: the largest of a class less that of
    the background, class 0.  nms_type is what an overlap is a part of: the union (IOU), the smaller
    box (IOMU) or the first one (IOFU).  The number of boxes is known only in the forward pass;
    without one there is a row (0, 1, 1, 10, 10) in top 0 and of zeros in top 1."""

    host = BoxOutputHost
    field = "box_output_param"
    fields = ("bbox_reg_param",)
    bottoms = at_least(1)
    tops = between(1, 2)
    plain_options = EVERY

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for name in ("field_h", "field_w", "downsample_rate"):
            sizes = getattr(options, name)
            if len(sizes) != len(bottoms) or min(sizes) < 1:
                self.fail(f"needs a positive {name} for each of {len(bottoms)} bottoms")
        if not (options.field_whr > 0 and options.field_xyr > 0):
            self.fail("field_whr and field_xyr must be positive")
        for shape in bottoms:
            if len(shape) != 4 or shape[1] < 6 or shape[:2] != bottoms[0][:2]:
                self.fail(
                    "needs bottoms of N x (2 classes or more, and 4) x H x W, with one N and one "
                    f"number of classes; one is {shape_text(shape)}"
                )
        values = {
            "nms_type": check_overlap(self, options.nms_type),
            "strides": tuple(options.downsample_rate),
            "sizes": tuple(zip(options.field_w, options.field_h, strict=True)),
            **scaling(self),
        }
        return Plan(((1, 5, 1, 1), (1, 6, 1, 1))[: len(self.parameter.top)], values=values)
