"""DetectNet's ClusterDetections (NVIDIA/caffe: python/caffe/layers/detectnet)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.layers.user_layer import UserLayer, supplies

Array = np.ndarray[Any, Any]
MAX_BOXES = 50
"""Boxes that an image may have; rows of zeros fill up, and what is more is left out."""


def group_rectangles(boxes: Array, least: int, eps: float) -> tuple[Array, Array]:
    """Return the mean rectangles (x, y, width, height) of groups, and how many each has.

    Rectangles whose four sides differ by at most `eps` of their mean size are of one group, and so
    are those that others join.  Groups of `least` or fewer are dropped, and groups inside a larger
    one; with a `least` of 0 every rectangle stays."""
    if least <= 0 or not len(boxes):
        return boxes, np.ones(len(boxes), np.int64)
    groups = _groups(boxes, eps)
    many = np.bincount(groups)
    sums = np.zeros((len(many), 4))
    np.add.at(sums, groups, boxes)
    means = np.rint(sums * (np.float32(1) / many.astype(np.float32))[:, None]).astype(np.int64)
    large = many > least
    means, many = means[large], many[large]
    outside = [not _inside(number, means, many, eps) for number in range(len(means))]
    return means[outside], many[outside]


def _groups(boxes: Array, eps: float) -> Array:
    """Return the number of each rectangle's group, in the order of their first ones."""
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
    """Return whether a larger group's rectangle, a little widened, holds this one."""
    room = np.rint(boxes[:, 2:] * eps)
    low, high = boxes[:, :2] - room, boxes[:, :2] + boxes[:, 2:] + room
    own = boxes[number]
    holds = (own[:2] >= low).all(1) & (own[:2] + own[2:] <= high).all(1)
    holds &= (many > max(3, many[number])) | (many[number] < 3)
    holds[number] = False
    return bool(holds.any())


@supplies("caffe.layers.detectnet.clustering")
class ClusterDetections(UserLayer):
    """Bottoms: coverage (N x classes x H x W) and corners (N x 4 x H x W), relative to the place;
    for each class a top N x 50 x 5 of corners and confidence.

    param_str: image width, height, stride, the least coverage, how many boxes a group needs
    more than, how far they may differ (a part of their size), the least height, classes.
    Boxes are grouped as OpenCV's groupRectangles does; confidence is the logarithm of a group's
    size."""

    def setup(self, bottom: Any, top: Any) -> None:
        words = [word.strip() for word in self.param_str.split(",")]
        if not 7 <= len(words) <= 8:
            raise ValueError("needs 7 numbers in param_str, and those of classes")
        self.settings = [float(word) for word in words]
        self.wide, self.high, self.stride = map(int, self.settings[:3])
        if min(self.wide, self.high, self.stride) < 1 or max(self.wide, self.high) > 1 << 20:
            raise ValueError("the sizes of the image and the stride must be positive")
        classes = int(self.settings[7]) if len(words) > 7 else 1
        if len(top) != classes:
            raise ValueError(f"needs a top for each of {classes} classes; there are {len(top)}")

    def reshape(self, bottom: Any, top: Any) -> None:
        shape = bottom[0].shape
        if len(shape) != 4 or shape[1] != len(top):
            raise ValueError(f"needs coverage of {len(top)} classes; its shape is {list(shape)}")
        for one in top:
            one.reshape(shape[0], MAX_BOXES, 5)

    def forward(self, bottom: Any, top: Any) -> None:
        for number, one in enumerate(top):
            one.data[...] = 0
            for image, cover in enumerate(bottom[0].data[:, number]):
                boxes = self._boxes(self._candidates(cover, bottom[1].data[image]))[:MAX_BOXES]
                # The fork's lists have numbers of 16 bits.
                one.data[image, : len(boxes)] = boxes.astype(np.float16)

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Boxes have no gradient."""

    def _candidates(self, cover: Array, corners: Array) -> Array:
        """Corners in pixels, at the places that are covered."""
        high, wide = self.high // self.stride, self.wide // self.stride
        y, x = np.nonzero(cover[:high, :wide] >= self.settings[3])
        boxes = corners[:, y, x].T.astype(np.float64)
        cells = np.stack([x * (self.wide / max(wide, 1)), y * (self.high / max(high, 1))], 1)
        return np.asarray(boxes + np.tile(cells, 2))

    def _boxes(self, candidates: Array) -> Array:
        if not candidates.any():
            return np.zeros((0, 5))
        rows = np.concatenate([candidates[:, :2], candidates[:, 2:] - candidates[:, :2]], 1)
        whole = np.trunc(np.clip(np.nan_to_num(rows), -(2**30), 2**30)).astype(np.int64)
        rectangles, many = group_rectangles(whole, int(self.settings[4]), self.settings[5])
        mask = rectangles[:, 3] >= self.settings[6]
        rectangles, many = rectangles[mask], many[mask]
        corners = np.concatenate([rectangles[:, :2], rectangles[:, :2] + rectangles[:, 2:]], 1)
        return np.concatenate([corners, np.log(many)[:, None]], 1)
