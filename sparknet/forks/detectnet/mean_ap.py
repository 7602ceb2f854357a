"""DetectNet's ScoreDetections and mAP: which boxes were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.forks.detectnet import MOST_BOXES
from sparknet.layers.user_layer import UserLayer

Array = np.ndarray[Any, Any]
LEAST = 0.7
"""The overlap of a box with the true one that it finds."""
FOUND, WRONG, MISSED = 1, 2, 3


class ScoreDetections(UserLayer):
    """Bottoms: lists of true boxes and of found ones, N x 50 x 5; the top has corners and 1
    (found), 2 (wrong) or 3 (a true box that is missed)."""

    def reshape(self, bottom: Any, top: Any) -> None:
        shapes = [tuple(one.shape) for one in bottom[:2]]
        if len(shapes) != 2 or any(len(one) != 3 or one[2] < 4 for one in shapes):
            raise ValueError(f"needs two lists of boxes; their shapes are {shapes}")
        if shapes[0][0] != shapes[1][0]:
            raise ValueError(f"needs lists of as many images; there are {shapes}")
        top[0].reshape(shapes[0][0], MOST_BOXES, 5)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = 0
        for image, (real, found) in enumerate(
            zip(bottom[0].data[..., :4], bottom[1].data[..., :4], strict=True)
        ):
            rows = scored(real[real.any(1)], found[found.any(1)])[:MOST_BOXES]
            top[0].data[image, : len(rows)] = rows

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Scores have no gradient."""


class mAP(UserLayer):  # noqa: N801 - the fork's name
    """Bottom: what ScoreDetections says; tops: precision times recall, precision and recall of the
    batch, all in percent."""

    def reshape(self, bottom: Any, top: Any) -> None:
        if len(top) != 3:
            raise ValueError(f"needs 3 tops; there are {len(top)}")
        for one in top:
            one.reshape(1)

    def forward(self, bottom: Any, top: Any) -> None:
        marks = bottom[0].data[..., 4]
        found, wrong, missed = (np.count_nonzero(marks == mark) for mark in (FOUND, WRONG, MISSED))
        precision = 100 * found / max(found + wrong, 1)
        recall = 100 * found / max(found + missed, 1)
        for one, value in zip(top, (precision * recall / 100, precision, recall), strict=True):
            one.data[...] = value

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Scores have no gradient."""


def scored(real: Array, found: Array) -> Array:
    """Rows of corners and mark: each true box takes the first free box that overlaps it enough."""
    taken, seen = np.zeros(len(found), bool), np.zeros(len(real), bool)
    for number, box in enumerate(real):
        fits = np.flatnonzero((overlaps(found, box) >= LEAST) & ~taken)
        if len(fits):
            taken[fits[0]] = seen[number] = True
    parts = [(found[taken], FOUND), (found[~taken], WRONG), (real[~seen], MISSED)]
    marked = [np.column_stack([boxes, np.full(len(boxes), mark)]) for boxes, mark in parts]
    return np.concatenate(marked)


def overlaps(boxes: Array, box: Array) -> Array:
    """Intersections over unions of boxes with one; corners have no pixels of their own."""
    low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
    common = np.maximum(high - low, 0).prod(1)
    union = (boxes[:, 2:] - boxes[:, :2]).prod(1) + (box[2:] - box[:2]).prod() - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=common > 0))
