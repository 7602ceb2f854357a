"""Anchors, overlaps, deltas and suppression of boxes, as in py-faster-rcnn (lib/rpn)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

RATIOS = (0.5, 1.0, 2.0)
SCALES = (8, 16, 32)
LARGEST = np.log(1000 / 16) * 4
"""A logarithm of a change of size beyond this gives no box that any image could hold."""


def anchors(
    base: int = 16, ratios: Sequence[float] = RATIOS, scales: Sequence[float] = SCALES
) -> Array:
    """Return a box of each ratio and scale around the first square of `base` pixels."""
    centre, area = (base - 1) / 2, base * base
    rows = []
    for ratio in ratios:
        wide = np.round(np.sqrt(area / ratio))
        high = np.round(wide * ratio)
        for scale in scales:
            half = np.array([wide * scale - 1, high * scale - 1]) / 2
            rows.append([centre - half[0], centre - half[1], centre + half[0], centre + half[1]])
    return np.array(rows)


def grid(high: int, wide: int, stride: int, base: Array) -> Array:
    """Return all anchors of a map: for each position a row for each base anchor."""
    x, y = np.meshgrid(np.arange(wide) * stride, np.arange(high) * stride)
    shifts = np.stack([x.ravel(), y.ravel()] * 2, 1)
    return np.asarray((shifts[:, None] + base[None]).reshape(-1, 4))


def measured(boxes: Array) -> tuple[Array, Array]:
    """Sizes and centres, N x 2 each."""
    sizes = boxes[:, 2:4] - boxes[:, :2] + 1
    return sizes, boxes[:, :2] + sizes / 2


def encode(boxes: Array, truth: Array) -> Array:
    """Return the deltas that move boxes to others: shifts by the size, logarithms of sizes."""
    (sizes, centres), (real, middle) = measured(boxes), measured(truth)
    return np.concatenate([(middle - centres) / sizes, np.log(real / sizes)], 1)


def decode(boxes: Array, deltas: Array) -> Array:
    """Move boxes by deltas."""
    sizes, centres = measured(boxes)
    middle = centres + deltas[:, :2] * sizes
    half = sizes * np.exp(np.minimum(deltas[:, 2:4], LARGEST)) / 2
    return np.concatenate([middle - half, middle + half], 1)


def clipped(boxes: Array, high: float, wide: float) -> Array:
    """Boxes with their corners inside an image."""
    most = np.array([wide - 1, high - 1] * 2)
    return np.asarray(np.clip(boxes, 0, most))


def overlaps(one: Array, two: Array) -> Array:
    """Intersections over unions of each of N boxes with each of M."""
    low = np.maximum(one[:, None, :2], two[None, :, :2])
    high = np.minimum(one[:, None, 2:4], two[None, :, 2:4])
    common = np.maximum(high - low + 1, 0).prod(2)
    area = [(boxes[:, 2:4] - boxes[:, :2] + 1).prod(1) for boxes in (one, two)]
    return np.asarray(common / (area[0][:, None] + area[1][None] - common))


def suppress(many: int, threshold: float, most: int, share: Callable[[int, Array], Array]) -> Array:
    """Return the boxes that overlap no kept one by more, by ``share`` of one with others."""
    rest = np.arange(many)
    indices: list[int] = []
    while len(rest) and len(indices) < most:
        first, rest = int(rest[0]), rest[1:]
        indices.append(first)
        rest = rest[share(first, rest) <= threshold]
    return np.array(indices, np.int64)


def nms(boxes: Array, threshold: float, most: int) -> Array:
    """Places of the boxes that are left where common pixels are a share of all of both."""
    low, high = boxes[:, :2], boxes[:, 2:4]
    area = (high - low + 1).prod(1)

    def share(first: int, left: Array) -> Array:
        sides = np.minimum(high[first], high[left]) - np.maximum(low[first], low[left]) + 1
        common = np.maximum(sides, 0).prod(1)
        return np.asarray(common / (area[first] + area[left] - common))

    return suppress(len(boxes), threshold, most, share)


def best(
    boxes: Array, scores: Array, before: int, after: int, suppress: Callable[..., Array]
) -> Array:
    """Return places that ``suppress`` leaves of the `before` best, at most `after`; 0: all."""
    order = np.argsort(-scores, kind="stable")[: before if before > 0 else None]
    return np.asarray(order[suppress(boxes[order], most=after if after > 0 else len(order))])


def propose(
    scores: Array,
    deltas: Array,
    image: Array,
    *,
    base: Array,
    stride: int,
    least: float,
    before: int,
    after: int,
    threshold: float,
) -> tuple[Array, Array]:
    """Return the best boxes of one image, and their scores.

    `scores` (A x H x W) and `deltas` (4 A x H x W) are of each anchor at each place; `image` is
    height, width and scale.  Boxes below `least` pixels of the unscaled image are left out, the
    `before` best compete, and at most `after` stay."""
    _, high, wide = scores.shape
    places = grid(high, wide, stride, base)
    by_place = deltas.reshape(-1, 4, high, wide).transpose(2, 3, 0, 1).reshape(-1, 4)
    boxes = clipped(decode(places, by_place.astype(np.float64)), image[0], image[1])
    flat_scores = scores.transpose(1, 2, 0).ravel()
    size = boxes[:, 2:] - boxes[:, :2] + 1
    large = np.flatnonzero((size >= least * image[2]).all(1) & np.isfinite(flat_scores))
    boxes, flat_scores = boxes[large], flat_scores[large]
    places = best(boxes, flat_scores, before, after, partial(nms, threshold=threshold))
    return boxes[places], flat_scores[places]
