"""Pictures turned by an angle, on a canvas that holds all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Size = tuple[int, int]
TINY = 1e-9


def bounds(size: Size, degrees: float) -> tuple[Array, Size]:
    """The first column and row, and the height and width, of the pixels that a turned rectangle
    touches (OpenCV: RotatedRect::boundingRect)."""
    high, wide = size
    corners = np.array([[0, 0], [wide, 0], [0, high], [wide, high]], np.float64)
    middle = np.array([wide, high]) / 2
    at = (corners - middle) @ _rotation(degrees).T + middle
    low, top = np.floor(at.min(0) + TINY), np.ceil(at.max(0) - TINY)
    extent = (top - low + 1).astype(int)
    return low, (int(extent[1]), int(extent[0]))


def turning(size: Size, degrees: float) -> Array:
    """The matrix 2 x 3 that maps a place (x, y) of the picture to that on its canvas."""
    middle = np.array([size[1], size[0]]) / 2
    rotation = _rotation(degrees)
    shift = middle - bounds(size, degrees)[0] - rotation @ middle
    return np.column_stack([rotation, shift])


def turned(image: Array, degrees: float) -> Array:
    """An image (height x width x channels) on its canvas, which is 0 elsewhere; between four
    pixels linearly."""
    size: Size = image.shape[:2]
    high, wide = bounds(size, degrees)[1]
    matrix = turning(size, degrees)
    y, x = np.mgrid[:high, :wide]
    places = (np.stack([x, y], -1) - matrix[:, 2]) @ matrix[:, :2]
    first = np.floor(places).astype(np.int64)
    part = (places - first)[..., None]
    inside = ((places > -TINY) & (places < np.array(size[::-1]) - 1 + TINY)).all(-1)
    found = np.zeros((high, wide, image.shape[2]), np.float32)
    for down in (0, 1):
        for right in (0, 1):
            rows = np.clip(first[..., 1] + down, 0, size[0] - 1)
            columns = np.clip(first[..., 0] + right, 0, size[1] - 1)
            weight = (part[..., 0, :] if right else 1 - part[..., 0, :]) * (
                part[..., 1, :] if down else 1 - part[..., 1, :]
            )
            found += (image[rows, columns] * weight).astype(np.float32)
    found[~inside] = 0
    return found


def _rotation(degrees: float) -> Array:
    angle = np.deg2rad(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
