"""Non-maximum suppression by cv2.dnn's rules (OpenCV: modules/dnn/src/nms.cpp, nms.inl.hpp)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SOFT_NMSMETHOD_SOFTNMS_LINEAR = 1
SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN = 2

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Indices = Any
"""An array of int32; () where no box stays, as cv2 says it."""


def NMSBoxes(
    bboxes: Any,
    scores: Any,
    score_threshold: float,
    nms_threshold: float,
    eta: float = 1.0,
    top_k: int = 0,
) -> Indices:
    """Return the indices of boxes (x, y, width, height) that no better one overlaps."""
    boxes, values = _boxes(bboxes), np.asarray(scores, np.float32).reshape(-1)
    return _best_boxes(boxes, _overlaps, values, score_threshold, nms_threshold, eta, top_k)


def NMSBoxesRotated(
    bboxes: Any,
    scores: Any,
    score_threshold: float,
    nms_threshold: float,
    eta: float = 1.0,
    top_k: int = 0,
) -> Indices:
    """`NMSBoxes` of boxes ((x, y), (width, height), degrees) around their middle."""
    boxes = np.array([[*middle, *sides, angle] for middle, sides, angle in bboxes], np.float64)
    values = np.asarray(scores, np.float32).reshape(-1)
    args = (score_threshold, nms_threshold, eta, top_k)
    return _best_boxes(boxes.reshape(-1, 5), _turned_overlaps, values, *args)


def NMSBoxesBatched(
    bboxes: Any,
    scores: Any,
    class_ids: Any,
    score_threshold: float,
    nms_threshold: float,
    eta: float = 1.0,
    top_k: int = 0,
) -> Indices:
    """`NMSBoxes` in which boxes of different classes do not suppress each other."""
    boxes, values = _boxes(bboxes), np.asarray(scores, np.float32).reshape(-1)
    offset = (boxes[:, :2] + boxes[:, 2:]).max(initial=0) + 1
    boxes[:, :2] += np.asarray(class_ids).reshape(-1, 1) * offset
    return _best_boxes(boxes, _overlaps, values, score_threshold, nms_threshold, eta, top_k)


def softNMSBoxes(
    bboxes: Any,
    scores: Any,
    score_threshold: float,
    nms_threshold: float,
    top_k: int = 0,
    sigma: float = 0.5,
    method: int = SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN,
) -> tuple[Any, Indices]:
    """Return the scores of the boxes that stay, lowered where better ones overlap, and indices."""
    boxes, values = _boxes(bboxes), np.array(scores, np.float32).reshape(-1)
    candidates = list(range(len(values)))
    indices: list[int] = []
    updated: list[float] = []
    while candidates and (top_k <= 0 or len(indices) < top_k):
        best = max(candidates, key=lambda index: values[index])
        if not values[best] >= score_threshold:
            break
        indices.append(best)
        updated.append(float(values[best]))
        candidates.remove(best)
        overlap = _overlaps(boxes[best], boxes[candidates]).astype(np.float32)
        if method == SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN:
            values[candidates] *= np.exp(-(overlap * overlap) / np.float32(sigma))
        else:
            values[candidates] *= np.where(overlap > nms_threshold, 1 - overlap, np.float32(1))
        candidates = [index for index in candidates if values[index] >= score_threshold]
    return np.array(updated, np.float32), np.array(indices, np.int32) if indices else ()


def _boxes(bboxes: Any) -> Doubles:
    return np.array(bboxes, np.float64).reshape(-1, 4)


def _best_boxes(
    boxes: Doubles,
    overlaps_of: Callable[[Doubles, Doubles], Doubles],
    scores: Any,
    score: float,
    threshold: float,
    eta: float,
    top_k: int,
) -> Indices:
    ranked = np.argsort(-scores, kind="stable").tolist()
    order = [index for index in ranked if scores[index] > np.float32(score)]
    indices: list[int] = []
    threshold = float(np.float32(threshold))
    overlaps = np.zeros(len(boxes))  # of each box, the largest with one that is kept
    for index in order[:top_k] if top_k > 0 else order:
        if not overlaps[index] > threshold:
            indices.append(index)
            overlaps = np.maximum(overlaps, overlaps_of(boxes[index], boxes))
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return np.array(indices, np.int32) if indices else ()


def _overlaps(box: Doubles, others: Doubles) -> Doubles:
    """Intersection over union; 1 for two boxes without any area."""
    least = np.minimum(box[:2] + box[2:], others[:, :2] + others[:, 2:])
    sides = np.maximum(least - np.maximum(box[:2], others[:, :2]), 0)
    shared = sides[:, 0] * sides[:, 1]
    union = box[2] * box[3] + others[:, 2] * others[:, 3] - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1), 1.0)


def _turned_overlaps(box: Doubles, others: Doubles) -> Doubles:
    """Intersection over union; 1 where one box lies in the other and touches no side."""
    corners = _corners(box)
    values = []
    for other in others:
        pair = corners, _corners(other)
        if any((_depths(inner, outer) > 1e-6).all() for inner, outer in (pair, pair[::-1])):
            values.append(1.0)
            continue
        shared = _area(_clip(*pair))
        values.append(shared / max(box[2] * box[3] + other[2] * other[3] - shared, 1e-12))
    return np.array(values)


def _corners(box: Doubles) -> Doubles:
    """Return a turned box's corners, one after the other around it."""
    cosine, sine = np.cos(np.radians(box[4])), np.sin(np.radians(box[4]))
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
    corners: Doubles = box[:2] + signs * box[2:4] @ np.array([[cosine, sine], [-sine, cosine]])
    return corners


def _depths(points: Doubles, window: Doubles) -> Doubles:
    """Return how far each point lies within each side of a polygon: sides x points."""
    sides = np.roll(window, -1, axis=0) - window
    across = np.stack([-sides[:, 1], sides[:, 0]], axis=1)
    depths: Doubles = np.einsum("sc,spc->sp", across, points[None] - window[:, None])
    return depths


def _clip(polygon: Doubles, window: Doubles) -> Doubles:
    """Cut a convex polygon at each side of another one (Sutherland and Hodgman)."""
    for side in range(len(window)):
        depths = _depths(polygon, window)[side]
        points: list[Any] = []
        for place, (point, depth) in enumerate(zip(polygon, depths, strict=True)):
            if depths[place - 1] * depth < 0:
                share = depth / (depth - depths[place - 1])
                points.append(point + share * (polygon[place - 1] - point))
            if depth >= 0:
                points.append(point)
        polygon = np.array(points).reshape(-1, 2)
    return polygon


def _area(polygon: Doubles) -> float:
    x, y = polygon.T
    return float(abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2)
