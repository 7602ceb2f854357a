"""Proposal and ProposalTarget: boxes from the scores of anchors, and boxes to train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.errors import LayerError
from sparknet.layers.anchors import RATIOS, SCALES, anchors, encode, propose
from sparknet.layers.cascade_rcnn import paired_overlaps, scaling
from sparknet.layers.host import DrawingHost, Host, HostBlob, put_rows, rows_of
from sparknet.layers.layer import (
    Layer,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    legacy_shape,
    shape_text,
)


class ProposalHost(Host):
    def forward(self, bottoms: Sequence[HostBlob], tops: Sequence[HostBlob]) -> None:
        values = self.node.plan.values
        base = anchors(values["base_size"], values["ratios"], values["scales"])
        if bottoms[2].count < 3:
            raise LayerError(self.node.name, "Proposal: the image has height, width and scale")
        boxes, scores = propose(
            bottoms[0].data[0, len(base) :],
            bottoms[1].data[0],
            bottoms[2].data.ravel()[:3],
            base=base,
            stride=values["feat_stride"],
            least=values["min_size"],
            before=values["pre_nms_topn"],
            after=values["post_nms_topn"],
            threshold=values["nms_thresh"],
        )
        rows = max(len(boxes), 1)
        for top, shape in zip(tops, ((rows, 5), (rows, 1, 1, 1)), strict=False):
            if tuple(top.shape) != shape:
                top.reshape(*shape)
            top.data[...] = 0
        tops[0].data[: len(boxes), 1:] = boxes
        if len(tops) > 1:
            tops[1].data[: len(boxes), 0, 0, 0] = scores


@layer("Proposal")
class Proposal(Layer):
    """proposal_layer.cpp of forks; bottoms: scores, deltas, and image height, width and scale.

    The scores are 1 x 2A x H x W, of which the second half counts, for A anchors of each ratio
    and scale; top 0 has rows (0, x1, y1, x2, y2), top 1 their scores.  The number of boxes is
    known only in the forward pass.  Values: those of proposal_param.
    """

    host = ProposalHost
    field = "proposal_param"
    bottoms = exactly(3)
    tops = between(1, 2)
    has_gradient = False
    has_dynamic_tops = True
    has_row_numbers = True
    plain_options = (
        "feat_stride",
        "base_size",
        "min_size",
        "pre_nms_topn",
        "post_nms_topn",
        "nms_thresh",
    )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        ratios, scales = tuple(options.ratio) or RATIOS, tuple(options.scale) or SCALES
        if min(*ratios, *scales) <= 0 or options.feat_stride < 1 or options.base_size < 1:
            self.fail("ratio, scale, feat_stride and base_size must be positive")
        many = len(ratios) * len(scales)
        scores, deltas = bottoms[:2]
        if len(scores) != 4 or scores[:2] != (1, 2 * many) or not count(scores[2:]):
            self.fail(
                f"{many} anchors need scores of 1 x {2 * many} x H x W, not {shape_text(scores)}"
            )
        if deltas != (1, 4 * many, *scores[2:]):
            self.fail(
                f"{many} anchors need deltas of {shape_text((1, 4 * many, *scores[2:]))}; "
                f"they are {shape_text(deltas)}"
            )
        values = {"ratios": ratios, "scales": scales}
        return Plan(((1, 5), (1, 1, 1, 1))[: len(self.parameter.top)], values=values)


Array = np.ndarray[Any, Any]
LEAST = 32
"""Pixels of a box that stands in where there is none to train on."""
TRIES = 100


class ProposalTargetHost(DrawingHost):
    def forward(self, bottoms: Sequence[HostBlob], tops: Sequence[HostBlob]) -> None:
        values = self.node.plan.values
        boxes = bottoms[0].data.reshape(-1, 5).astype(np.float64)
        truth = rows_of(bottoms[1].data).astype(np.float64)
        truth = truth[truth[:, 0].astype(np.int64) != -1]
        if values["append_gtbox"]:
            boxes = np.concatenate([boxes, truth[:, :5]])
        self._check(boxes, truth)
        best, most = match(boxes, truth)
        objects, others = self._sampled(best, most, truth)
        if not len(objects) + len(others):
            boxes = np.concatenate([boxes, self._stand_in(truth)])
            others = np.array([len(boxes) - 1])
        rows = np.concatenate([objects, others]).astype(np.int64)
        real = truth[best[objects]]
        nearest = np.zeros((len(rows), 6))
        nearest[: len(objects)] = np.concatenate(
            [real[:, 5:6], real[:, 1:5], most[objects, None]], 1
        )
        labels = nearest[:, 0].astype(np.int64)
        parts = [boxes[rows], labels, *self._targets(boxes[rows], nearest), nearest]
        for top, part in zip(tops, [*parts, self._weights(nearest)], strict=False):
            put_rows(top, part)

    def _check(self, boxes: Array, truth: Array) -> None:
        values = self.node.plan.values
        images = np.concatenate([boxes[:, 0], truth[:, 0]])
        most = values["num_img_per_batch"]
        if not ((images >= 0) & (images < most)).all():
            bad = images[(images < 0) | (images >= most)][0]
            self._fail(f"a box is of image {bad:g}; num_img_per_batch is {most}")
        labels = truth[:, 5]
        if not (
            (labels > 0) & (labels < (values["classes"] if values["cls_aware"] else 2**31))
        ).all():
            bad = labels[(labels < 1) | (labels >= values["classes"])][0]
            self._fail(f"a true box is of class {bad:g}; cls_num is {values['classes']}")

    def _fail(self, message: str) -> None:
        raise LayerError(self.node.name, f"ProposalTarget: {message}")

    def _sampled(self, best: Array, most: Array, truth: Array) -> tuple[Array, Array]:
        """Places of the boxes of objects and of the background that are taken."""
        values = self.node.plan.values
        fits = most >= values["fg_thr"]
        ignored = np.append(truth[:, 6] != 0, False)[best]
        objects = np.flatnonzero(fits & ~ignored)
        near = ~fits & (most >= values["bg_thr_lw"]) & (most < values["bg_thr_hg"])
        others, far = np.flatnonzero(near), np.flatnonzero(~fits & ~near)
        batch, share = len(objects) + len(others), len(objects)
        if values["batch_size"] > 0:
            batch = values["batch_size"]
            share = int(values["fg_fraction"] * batch + 0.5)
        objects = self._some(objects, share)
        background = batch - len(objects)
        if len(others) <= background and values["pickup_discard"]:
            others = np.concatenate([others, far[: background - len(others)]])
        return objects, self._some(others, background)

    def _some(self, places: Array, most: int) -> Array:
        return places if len(places) <= most else self.rng.permutation(places)[:most]

    def _stand_in(self, truth: Array) -> Array:
        """Return a box of the background; the last one tried, where every one holds an object."""
        values = self.node.plan.values
        size = np.maximum([values["img_width"], values["img_height"]], LEAST + 1)
        row = np.zeros((1, 5))
        for _ in range(TRIES):
            low = self.rng.integers(size - LEAST)
            extent = np.maximum(self.rng.integers(size - low), LEAST)
            row[0, 0] = self.rng.integers(values["num_img_per_batch"])
            row[0, 1:] = [*low, *(low + extent - 1)]
            if match(row, truth)[1][0] < values["fg_thr"]:
                break
        return row

    def _targets(self, boxes: Array, found: Array) -> tuple[Array, Array, Array]:
        """Deltas in the columns of the class, and the two weights of each."""
        values = self.node.plan.values
        columns = int(self.node.plan.tops[2][1])
        deltas, weights = np.zeros((len(boxes), columns)), np.zeros((len(boxes), columns))
        rows = np.flatnonzero(found[:, 0] > 0)
        targets = (encode(boxes[rows, 1:], found[rows, 1:5]) - values["means"]) / values["stds"]
        shared = found[rows, 5]
        counts = (values["bbox_thr_lw"] <= shared) & (shared <= values["bbox_thr_hg"])
        label = found[rows, 0].astype(np.int64)
        first = 4 * (label if values["cls_aware"] else np.minimum(label, 1))
        for number in range(4):
            deltas[rows, first + number] = targets[:, number]
            weights[rows, first + number] = counts
        return deltas, weights, weights

    def _weights(self, found: Array) -> Array:
        """Weights of objects add up to fg_fraction of all, if there is an object."""
        values = self.node.plan.values
        real, share = found[:, 0] > 0, values["fg_fraction"]
        weights = np.where(real, found[:, 5], 1) if values["iou_weighted"] else np.ones(len(found))
        if weights[real].sum() > 0:
            for some, part in ((real, share), (~real, 1 - share)):
                if some.any():
                    weights[some] *= part * len(found) / weights[some].sum()
        return weights


def match(boxes: Array, truth: Array) -> tuple[Array, Array]:
    """Return the true box that each box overlaps most in its image, and how much; -1 and 0 if
    its image has none."""
    best, most = np.full(len(boxes), -1), np.full(len(boxes), -1.0)
    for place, row in enumerate(truth):
        shared = paired_overlaps(boxes[:, 1:5], row[None, 1:5])
        better = (boxes[:, 0] == row[0]) & (shared > most)
        best[better], most[better] = place, shared[better]
    return best, np.maximum(most, 0)


@layer("ProposalTarget")
class ProposalTarget(Layer):
    """proposal_target_layer.cpp; bottoms: proposals (N x 5) and true boxes (M x 8: image, corners,
    class, ignored, difficult).

    Tops: the chosen boxes (R x 5), their classes, the targets of their deltas in the columns of
    their class (R x 4 classes, or R x 8 without cls_aware), the weights inside and outside a
    smooth L1 loss, the true boxes matched (R x 6: class, corners, overlap), and, if there is a
    seventh, weights of the samples.  R is known only in the forward pass.
    Values: those of proposal_target_param, classes, cls_aware, means, stds.
    """

    host = ProposalTargetHost
    field = "proposal_target_param"
    fields = ("bbox_reg_param",)
    bottoms = exactly(2)
    tops = between(6, 7)
    has_gradient = False
    has_dynamic_tops = True
    plain_options = (
        "batch_size",
        "fg_fraction",
        "num_img_per_batch",
        "fg_thr",
        "bg_thr_hg",
        "bg_thr_lw",
        "img_width",
        "img_height",
        "iou_weighted",
        "bbox_thr_lw",
        "bbox_thr_hg",
        "pickup_discard",
        "append_gtbox",
    )

    @property
    def draws(self) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        shapes = [
            legacy_shape(self, s, n)
            for s, n in zip(bottoms, ("proposals", "true boxes"), strict=True)
        ]
        if shapes[0][1:] != (5, 1, 1) or shapes[1][1:] not in ((7, 1, 1), (8, 1, 1)):
            self.fail(
                "takes N x 5 proposals and M x 8 true boxes; they are "
                f"{shape_text(bottoms[0])} and {shape_text(bottoms[1])}"
            )
        if options.cls_num < 2:
            self.fail(f"cls_num must be at least 2, with the background; it is {options.cls_num}")
        if options.batch_size < 1 and options.batch_size != -1:
            self.fail(f"batch_size must be positive, or -1; it is {options.batch_size}")
        if not options.bg_thr_hg <= options.fg_thr or not 0 <= options.fg_fraction <= 1:
            self.fail("needs bg_thr_hg of at most fg_thr, and fg_fraction from 0 to 1")
        aware = self.parameter.bbox_reg_param.cls_aware
        columns = 4 * options.cls_num if aware else 8
        rows = options.batch_size if options.batch_size > 0 else max(shapes[0][0], 1)
        widths = (5, 1, columns, columns, columns, 6, 1)[: len(self.parameter.top)]
        values = {
            "classes": options.cls_num,
            "cls_aware": aware,
            **scaling(self),
        }
        return Plan(tuple((rows, width, 1, 1) for width in widths), values=values)
