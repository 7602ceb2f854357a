"""Maps of anchors as boxes, and back (Cascade R-CNN: bbox_util.cpp, detection_group_*.cpp)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def boxes_of(deltas: Array, values: Mapping[str, Any]) -> Array:
    """Corners (N A x H x W x 4) of what bounded deltas (N A x 4 x H x W) make of anchors."""
    parts = deltas * _four(values["stds"]) + _four(values["means"])
    reach, grows = 1 / values["field_xyr"], abs(np.log(values["field_whr"]))
    sizes, places = _anchors(deltas.shape, values)
    middle = np.clip(parts[:, :2], -reach, reach) * sizes + places
    return _cornered(middle, np.exp(np.clip(parts[:, 2:], -grows, grows)) * sizes)


def true_boxes(labels: Array) -> Array:
    """Corners (N A x H x W x 4) of the labels' boxes."""
    return _cornered(labels[:, 1:3], labels[:, 3:5])


def targets(labels: Array, values: Mapping[str, Any]) -> Array:
    """The deltas (N A x 4 x H x W) that make the labels' boxes of anchors."""
    sizes, places = _anchors(labels.shape, values)
    shifts = (labels[:, 1:3] - places) / sizes
    grows = np.log(np.maximum(labels[:, 3:5], 2) / sizes)
    both = np.concatenate([shifts, grows], 1)
    return np.asarray((both - _four(values["means"])) / _four(values["stds"]))


def bounded(deltas: Array, values: Mapping[str, Any]) -> Array:
    """Deltas no further than field_xyr and field_whr allow, by the mean of both scalings."""
    means, stds = np.array(values["means"]), np.array(values["stds"])
    reach, grows = 1 / values["field_xyr"], abs(np.log(values["field_whr"]))
    found = deltas.copy()
    for part, most in ((slice(0, 2), reach), (slice(2, 4), grows)):
        mean, std = means[part].mean(), np.sqrt(stds[part].prod())
        found[:, part] = np.clip(deltas[:, part], (-most - mean) / std, (most - mean) / std)
    return np.asarray(found)


def _anchors(shape: tuple[int, ...], values: Mapping[str, Any]) -> tuple[Array, Array]:
    """Sizes (N A x 2 x 1 x 1) and centres (2 x H x W) of anchors."""
    many = shape[0] // len(values["sizes"])
    sizes = np.tile(np.array(values["sizes"], np.float64), (many, 1))[:, :, None, None]
    x, y = np.meshgrid(np.arange(shape[3]) + 0.5, np.arange(shape[2]) + 0.5)
    return sizes, np.stack([x, y]) * values["stride"]


def _four(numbers: Any) -> Array:
    return np.array(numbers, np.float64).reshape(4, 1, 1)


def _cornered(middle: Array, size: Array) -> Array:
    low = middle - size / 2
    return np.asarray(np.concatenate([low, low + size - 1], 1).transpose(0, 2, 3, 1))
