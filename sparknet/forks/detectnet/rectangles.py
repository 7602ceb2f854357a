"""Rectangles that nearly agree as one: what OpenCV's groupRectangles computes."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def grouped(boxes: Array, least: int, eps: float) -> tuple[Array, Array]:
    """The mean rectangles (x, y, width, height) of groups, and how many each has.

    Rectangles whose four sides differ by at most `eps` of their mean size are of one group, and so
    are those that others join.  Groups of `least` or fewer are dropped, and groups inside a larger
    one; with a `least` of 0 every rectangle stays.
    """
    if least <= 0 or not len(boxes):
        return boxes, np.ones(len(boxes), np.int64)
    groups = _joined(boxes, eps)
    many = np.bincount(groups)
    sums = np.zeros((len(many), 4))
    np.add.at(sums, groups, boxes)
    means = np.rint(sums * (np.float32(1) / many.astype(np.float32))[:, None]).astype(np.int64)
    large = many > least
    means, many = means[large], many[large]
    kept = [not _inside(number, means, many, eps) for number in range(len(means))]
    return means[kept], many[kept]


def _joined(boxes: Array, eps: float) -> Array:
    """The number of each rectangle's group, in the order of their first ones."""
    ends = boxes[:, :2] + boxes[:, 2:]
    group = np.full(len(boxes), -1)
    for first in range(len(boxes)):
        if group[first] >= 0:
            continue
        group[first] = group.max() + 1
        waiting = [first]
        while waiting:
            one = waiting.pop()
            sizes = np.minimum(boxes[:, 2:], boxes[one, 2:]).sum(1)
            most = eps * sizes * 0.5
            near = (abs(boxes[:, :2] - boxes[one, :2]) <= most[:, None]).all(1)
            near &= (abs(ends - ends[one]) <= most[:, None]).all(1)
            new = np.flatnonzero(near & (group < 0))
            group[new] = group[first]
            waiting.extend(new)
    return group


def _inside(number: int, boxes: Array, many: Array, eps: float) -> bool:
    """Whether a larger group's rectangle, a little widened, holds this one."""
    room = np.rint(boxes[:, 2:] * eps)
    low, high = boxes[:, :2] - room, boxes[:, :2] + boxes[:, 2:] + room
    own = boxes[number]
    holds = (own[:2] >= low).all(1) & (own[:2] + own[2:] <= high).all(1)
    holds &= (many > max(3, many[number])) | (many[number] < 3)
    holds[number] = False
    return bool(holds.any())
