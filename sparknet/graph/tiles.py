"""tiles: filters and activations as a picture, a tile for each plane."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sparknet.errors import ArrayError, clean
from sparknet.graph.plots import Pixels, Raster
from sparknet.layers.layer import shape_text

WIDTH = 480
"""Pixels; a narrower picture is enlarged by a whole number."""
MOST = 400
"""Tiles."""
Channels = Literal["bgr", "rgb"]

_SIDE = 1024
"""The most values in a row or a column of a tile."""
_NO_NUMBER = (255, 0, 255)


def tiles(values: ArrayLike, *, most: int = MOST, channels: Channels = "bgr") -> Raster:
    """Return an array as a picture: the last two axes are a tile, the others count tiles.

    (n, 3, height, width) gives n tiles in colour, whose channels have Caffe's order unless
    ``channels`` is "rgb"; one axis gives a row.  Of all values the least is black and the largest
    white; what is no finite number is magenta.  The first ``most`` tiles are tiles, in a square.
    Of a matrix of more than 1024 rows or columns every second, third, ... one is tiles."""
    array = np.asarray(values)
    if array.size == 0 or array.dtype.kind not in "biuf":
        raise ArrayError(
            f"there is nothing to draw in an array of {shape_text(array.shape)} {array.dtype}"
        )
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ArrayError(f"most is {clean(repr(most))}: a whole number of tiles is needed")
    if channels not in ("bgr", "rgb"):
        raise ArrayError(f"channels is {clean(repr(channels))}: 'bgr' or 'rgb' is needed")
    planes = _planes(array, channels)
    number = len(planes)
    planes = planes[:most]
    pixels = _grid(_bytes(planes))
    left_out = f" of {number}" if number > len(planes) else ""
    count = f"{len(planes)}{left_out} tiles" if number > 1 else "one tile"
    return Raster(pixels, f"{shape_text(array.shape)} values as {count}")


def _planes(array: np.ndarray[Any, Any], channels: str) -> np.ndarray[Any, Any]:
    """Tiles x height x width x 1 or 3."""
    if array.ndim < 2:
        array = array.reshape(1, -1)
    down, across = (-(-size // _SIDE) for size in array.shape[-2:])
    array = array[..., ::down, ::across]
    if array.ndim == 4 and array.shape[1] == 3:
        return np.moveaxis(array if channels == "rgb" else array[:, ::-1], 1, 3)
    return array.reshape(-1, *array.shape[-2:], 1)


def _bytes(planes: np.ndarray[Any, Any]) -> Pixels:
    finite = np.isfinite(planes)
    values = planes[finite].astype(np.float64)
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    scaled = np.where(finite, planes, low).astype(np.float64) - low
    if high > low:
        scaled *= 255 / (high - low)
    grey = np.rint(scaled).astype(np.uint8)
    pixels: Pixels = np.broadcast_to(grey, (*grey.shape[:-1], 3)).copy()
    pixels[~finite.all(axis=-1)] = _NO_NUMBER
    return pixels


def _grid(tiles: Pixels) -> Pixels:
    """Return the tiles row by row in a square, white lines between them."""
    number, height, width, _ = tiles.shape
    columns = math.ceil(math.sqrt(number))
    rows = -(-number // columns)
    times = max(1, WIDTH // (columns * width))
    tiles = tiles.repeat(times, axis=1).repeat(times, axis=2)
    gap = 1 + times // 4
    high, wide = height * times + gap, width * times + gap
    grid = np.full((rows * high - gap, columns * wide - gap, 3), 255, np.uint8)
    for place, tile in enumerate(tiles):
        top, left = place // columns * high, place % columns * wide
        grid[top : top + high - gap, left : left + wide - gap] = tile
    return grid
