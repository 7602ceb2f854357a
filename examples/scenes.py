"""Drawn scenes of shapes, with their boxes and the class of each pixel."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

NAMES = ["background", "circle", "square", "cross", "triangle"]
MOST = 3
"""The shapes of a scene."""
Box = tuple[float, ...]


def scene(random: np.random.Generator, side: int) -> tuple[Any, Any, list[Box]]:
    """A picture of one to three shapes, the class of each pixel, and the shapes' boxes: label,
    xmin, ymin, xmax and ymax as shares of the side.
    """
    picture = random.integers(20, 90) + random.integers(0, 40, (side, side, 3))
    classes = np.zeros((side, side), np.uint8)
    boxes: list[Box] = []
    y, x = np.mgrid[:side, :side]
    for _ in range(random.integers(1, MOST + 1)):
        radius = int(random.integers(side // 11, side // 6))
        left, top = random.integers(1, side - 2 * radius - 1, 2)
        box = (left, top, left + 2 * radius + 1, top + 2 * radius + 1)
        if classes[box[1] : box[3], box[0] : box[2]].any():
            continue
        label = int(random.integers(1, len(NAMES)))
        inside = shape(label, x - left - radius, y - top - radius, radius)
        picture[inside] = random.integers(110, 256, 3) + random.integers(-20, 20, 3)
        classes[inside] = label
        boxes.append((label, *(corner / side for corner in box)))
    return picture.clip(0, 255).astype(np.uint8), classes, boxes


def shape(label: int, x: Any, y: Any, radius: int) -> Any:
    """Where a shape of such a radius around 0 covers the plane."""
    square = (abs(x) <= radius) & (abs(y) <= radius)
    if label == 1:
        return x**2 + y**2 <= radius**2
    if label == 2:
        return square
    if label == 3:
        return square & ((abs(x) <= radius // 3) | (abs(y) <= radius // 3))
    return square & (2 * abs(x) <= y + radius)


def png(picture: Any) -> bytes:
    written = io.BytesIO()
    Image.fromarray(picture).save(written, "png")
    return written.getvalue()
