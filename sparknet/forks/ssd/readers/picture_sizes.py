"""Lists of pictures' sizes, and boxes in their pixels (SSD: detection_evaluate_layer.cpp,
bbox_util.cpp)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image import numbered_lines
from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]
Size = tuple[int, int]


def read_sizes(path: str) -> list[Size]:
    """Height and width of each line `name height width`."""
    found = []
    for number, line in numbered_lines(path):
        words = line.split()
        try:
            high, wide = (int(word) for word in words[1:])
        except ValueError:
            high = wide = 0
        if high < 1 or wide < 1:
            raise FileError(path, f"line {number} is no name with a height and a width")
        found.append((high, wide))
    if not found:
        raise FileError(path, "holds no size")
    return found


def in_pixels(boxes: Array, size: Size, how: caffe_pb2.ResizeParameter | None) -> Array:
    """Boxes of a resized picture, in shares of its sides, as pixels of the picture itself."""
    high, wide = size
    found = boxes.astype(np.float64)
    modes = caffe_pb2.ResizeParameter
    if how is not None and how.resize_mode == modes.FIT_LARGE_SIZE_AND_PAD:
        aspect = wide / high
        empty = (
            max(1 - how.width / aspect / how.height, 0),
            max(1 - how.height * aspect / how.width, 0),
        )
        for side, share in ((1, empty[0]), (0, empty[1])):
            found[:, side::2] = (found[:, side::2] - share / 2) / (1 - share)
    elif (
        how is not None
        and how.resize_mode == modes.FIT_SMALL_SIZE
        and how.height_scale
        and how.width_scale
    ):
        found *= [how.width_scale, how.height_scale] * 2
        return np.clip(found, 0, [wide, high] * 2)
    return np.asarray(np.clip(found, 0, 1) * ([wide, high] * 2))
