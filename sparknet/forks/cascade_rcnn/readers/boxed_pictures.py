"""Pictures with boxes for MS-CNN and Cascade R-CNN: window files, and how the two go together.

zhaoweicai/cascade-rcnn: detection_data_layer.cpp, eval_data_layer.cpp, bbox_util.cpp;
zhaoweicai/mscnn: image_gt_data_layer.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image import decode
from sparknet.loaders.resize import resize
from sparknet.loaders.window import Words, rounded

Array = np.ndarray[Any, Any]
Size = tuple[int, int]

LARGEST = 1 << 28
"""Pixels that a picture may have after it is resized."""


@dataclass(frozen=True)
class Listed:
    """A picture of a window file: its path, channels, height and width, and its boxes.

    Boxes are rows of x1, y1, x2, y2; facts are rows of class, ignored and, for Cascade R-CNN,
    difficult; `outside` are boxes in which nothing is labelled.
    """

    path: str
    shape: tuple[int, int, int]
    boxes: Array
    facts: Array
    outside: Array


def read_listed(path: str, most: int | None = None, facts: int = 3) -> list[Listed]:
    """The pictures of a window file, at most so many.

    A picture is ``# number``, file name, channels, height, width, the number of boxes, these as
    class, ignored, difficult (with three facts) and corners, then the number of regions without
    labels, and these.
    """
    words = Words(path)
    found: list[Listed] = []
    while (most is None or len(found) < most) and words.more():
        if words.text("'#'") != "#":
            raise words.wrong("image", len(found), "does not begin with '#'")
        number = words.integer("image number")
        if number != len(found):
            raise words.wrong("image", len(found), f"has the number {number}")
        name = words.text("file name")
        channels, high, wide = (words.integer(what) for what in ("channels", "height", "width"))
        if channels != 3 or high < 1 or wide < 1:
            raise words.wrong(
                "image", number, f"is {channels} x {high} x {wide}; it needs 3 colours"
            )
        rows = _rows(words, facts + 4)
        outside = _rows(words, 4)
        if (rows[:, 0] < 1).any():
            raise words.wrong("image", number, "has a box of a class below 1")
        found.append(
            Listed(name, (channels, high, wide), rows[:, facts:], rows[:, :facts], outside)
        )
    if not found:
        raise FileError(path, "is empty")
    return found


def _rows(words: Words, width: int) -> Array:
    many = words.integer("number of boxes")
    rows = [[words.integer("number of a box") for _ in range(width)] for _ in range(many)]
    return np.array(rows, np.float64).reshape(-1, width)


@dataclass
class Picture:
    """A picture (height x width x BGR bytes) whose boxes go with it."""

    pixels: Array
    boxes: Array
    facts: Array
    outside: Array

    def mirror(self) -> None:
        """As in the fork a box's corners become the width less the other corner."""
        wide = self.pixels.shape[1]
        self.pixels = self.pixels[:, ::-1]
        for boxes in (self.boxes, self.outside):
            boxes[:, ::2] = wide - boxes[:, 2::-2]

    def resize(self, size: Size, path: str, factors: tuple[float, float] | None = None) -> None:
        """Into another height and width; boxes by the factors, those of the sizes unless given."""
        high, wide = self.pixels.shape[:2]
        if min(size) < 1 or size[0] * size[1] > LARGEST:
            raise FileError(path, f"would be resized to {size[0]} x {size[1]} pixels")
        if size != (high, wide):
            self.pixels = resize(np.ascontiguousarray(self.pixels), size, "cv2.linear")
        self.scale(*(factors or (size[0] / high, size[1] / wide)))

    def scale(self, high: float, wide: float) -> None:
        self.boxes *= [wide, high, wide, high]
        self.outside *= [wide, high, wide, high]

    def shift(self, down: float, right: float) -> None:
        self.boxes += [right, down, right, down]
        self.outside += [right, down, right, down]


def load(one: Listed, root: str) -> Picture:
    path = root + one.path
    pixels = decode(path, path, True).transpose(1, 2, 0)
    return Picture(pixels, one.boxes.copy(), one.facts.copy(), one.outside.copy())


def by_short_side(size: Size, short: int) -> Size:
    """A height and width whose smaller one is `short`."""
    factor = short / min(size)
    return rounded(size[0] * factor), rounded(size[1] * factor)


def to_32(number: float) -> int:
    """The nearest multiple of 32."""
    return rounded(number / 32) * 32


def planes(pixels: Array, mean: Sequence[float], scale: float) -> Array:
    """Channels x height x width, less the mean, scaled."""
    values = pixels.transpose(2, 0, 1).astype(np.float32, order="C")
    if len(mean):
        values -= np.array(mean, np.float32).reshape(-1, 1, 1)
    values *= np.float32(scale)
    return np.asarray(values)


NO_BOX = (-1,) * 8


def box_rows(made: Sequence[tuple[Array, Array]], none: Sequence[float] = NO_BOX) -> Array:
    """A row (item, corners, facts) for each box of a batch; `none` where there is none."""
    parts = [
        np.concatenate([np.full((len(boxes), 1), item), boxes, facts], 1)
        for item, (boxes, facts) in enumerate(made)
    ]
    rows: Array = np.concatenate(parts).astype(np.float32)
    return (rows if len(rows) else np.array([none], np.float32))[:, :, None, None]
