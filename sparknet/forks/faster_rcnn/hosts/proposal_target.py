"""ProposalTarget: boxes to train on (Cascade R-CNN: proposal_target_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import DrawingHost
from sparknet.caffe.host.rows import put_rows, rows_of
from sparknet.errors import LayerError
from sparknet.forks.cascade_rcnn.cascade_boxes import paired_overlaps
from sparknet.forks.faster_rcnn.rpn.boxes import encoded

Array = np.ndarray[Any, Any]
LEAST = 32
"""Pixels of a box that stands in where there is none to train on."""
TRIES = 100


class ProposalTargetHost(DrawingHost):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        boxes = bottoms[0].data.reshape(-1, 5).astype(np.float64)
        truth = rows_of(bottoms[1].data).astype(np.float64)
        truth = truth[truth[:, 0].astype(np.int64) != -1]
        if values["append_gtbox"]:
            boxes = np.concatenate([boxes, truth[:, :5]])
        self._check(boxes, truth)
        best, most = matched(boxes, truth)
        objects, others = self._sampled(best, most, truth)
        if not len(objects) + len(others):
            boxes = np.concatenate([boxes, self._stand_in(truth)])
            others = np.array([len(boxes) - 1])
        rows = np.concatenate([objects, others]).astype(np.int64)
        real = truth[best[objects]]
        found = np.zeros((len(rows), 6))
        found[: len(objects)] = np.concatenate([real[:, 5:6], real[:, 1:5], most[objects, None]], 1)
        labels = found[:, 0].astype(np.int64)
        parts = [boxes[rows], labels, *self._targets(boxes[rows], found), found]
        for top, part in zip(tops, [*parts, self._weights(found)], strict=False):
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
        left = batch - len(objects)
        if len(others) <= left and values["pickup_discard"]:
            others = np.concatenate([others, far[: left - len(others)]])
        return objects, self._some(others, left)

    def _some(self, places: Array, most: int) -> Array:
        return places if len(places) <= most else self.rng.permutation(places)[:most]

    def _stand_in(self, truth: Array) -> Array:
        """A box of the background; the last one tried, where every one holds an object."""
        values = self.node.plan.values
        size = np.maximum([values["img_width"], values["img_height"]], LEAST + 1)
        row = np.zeros((1, 5))
        for _ in range(TRIES):
            low = self.rng.integers(size - LEAST)
            extent = np.maximum(self.rng.integers(size - low), LEAST)
            row[0, 0] = self.rng.integers(values["num_img_per_batch"])
            row[0, 1:] = [*low, *(low + extent - 1)]
            if matched(row, truth)[1][0] < values["fg_thr"]:
                break
        return row

    def _targets(self, boxes: Array, found: Array) -> tuple[Array, Array, Array]:
        """Deltas in the columns of the class, and the two weights of each."""
        values = self.node.plan.values
        columns = int(self.node.plan.tops[2][1])
        deltas, weights = np.zeros((len(boxes), columns)), np.zeros((len(boxes), columns))
        rows = np.flatnonzero(found[:, 0] > 0)
        wanted = (encoded(boxes[rows, 1:], found[rows, 1:5]) - values["means"]) / values["stds"]
        shared = found[rows, 5]
        counts = (values["bbox_thr_lw"] <= shared) & (shared <= values["bbox_thr_hg"])
        label = found[rows, 0].astype(np.int64)
        first = 4 * (label if values["cls_aware"] else np.minimum(label, 1))
        for number in range(4):
            deltas[rows, first + number] = wanted[:, number]
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


def matched(boxes: Array, truth: Array) -> tuple[Array, Array]:
    """Of each box the true box of its image that it overlaps most, and how much; -1 and 0 where
    its image has none."""
    best, most = np.full(len(boxes), -1), np.full(len(boxes), -1.0)
    for place, row in enumerate(truth):
        shared = paired_overlaps(boxes[:, 1:5], row[None, 1:5])
        better = (boxes[:, 0] == row[0]) & (shared > most)
        best[better], most[better] = place, shared[better]
    return best, np.maximum(most, 0)
