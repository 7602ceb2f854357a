"""Resizes images by the numbers of caffe.io, OpenCV or Pillow."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import ceil
from typing import Any

import numpy as np

from sparknet.loaders.image_decoding import Part
from sparknet.native.transform import Taps, resample_image, resize_image

Array = np.ndarray[Any, Any]
Doubles = np.ndarray[Any, np.dtype[np.float64]]
Size = tuple[int, int]
Kernel = Callable[[Doubles], tuple[np.ndarray[Any, np.dtype[np.int64]], Doubles]]
"""Places between the input's pixels → the pixels around them, and their weights."""


def resize(image: Array, size: Size, interpolation: str, part: Part | None = None) -> Array:
    """Return an image of height x width (x channels), bytes or float32, in another size.

    Bytes stay bytes, except by caffe.io's ways, which do not round.  ``part`` is the height and
    width of the image's upper left that is resized.
    """
    if image.shape[:2] == size:
        return image
    library = interpolation.partition(".")[0]
    if library == "pil":
        return _by_pillow(image, size, interpolation)
    old = part or image.shape[:2]
    halved = interpolation == "cv2.area" and old == (2 * size[0], 2 * size[1])
    direct = halved or (interpolation == "cv2.linear" and old == image.shape[:2])
    if image.dtype == np.uint8 and direct:
        return resize_image(image, *size)
    rows, columns = axes(interpolation, old, size)
    bounded = library == "caffe"
    rounded = not bounded and image.dtype == np.uint8
    return resample_image(image, rows, columns, bounded=bounded, rounded=rounded)


def axes(interpolation: str, old: Part, new: Size) -> tuple[Taps, Taps]:
    """Return what each row and each column of the output is made of."""
    if interpolation == "cv2.area":
        shrinks = all(before >= after for before, after in zip(old, new, strict=True))
        make = _averaged if shrinks else _widened
        return make(old[0], new[0]), make(old[1], new[1])
    return _axis(interpolation, old[0], new[0]), _axis(interpolation, old[1], new[1])


@lru_cache(64)
def _axis(interpolation: str, old: float, new: int) -> Taps:
    if interpolation == "cv2.nearest":
        at = np.minimum(np.floor(np.arange(new) * (1 / (new / old))), ceil(old) - 1)
        return at[:, None].astype(np.int32), np.ones((new, 1), np.float32)
    where, weights = KERNELS[interpolation](centres(old, new))
    if interpolation.startswith("caffe."):
        weights = weights * ((where >= 0) & (where < old))
    return np.clip(where, 0, ceil(old) - 1).astype(np.int32), weights.astype(np.float32)


def centres(old: float, new: int) -> Doubles:
    """Return where the centres of the output's pixels lie in the input."""
    points: Doubles = (np.arange(new, dtype=np.float64) + 0.5) * (old / new) - 0.5
    return points


def nearest(at: Doubles) -> tuple[Any, Doubles]:
    return np.floor(at + 0.5).astype(np.int64)[:, None], np.ones((len(at), 1))


def linear(at: Doubles) -> tuple[Any, Doubles]:
    first = np.floor(at).astype(np.int64)
    t = at - first
    return first[:, None] + np.arange(2), np.stack([1 - t, t], 1)


def cubic(at: Doubles, slope: float = -0.5) -> tuple[Any, Doubles]:
    """Keys' spline through the four nearest pixels; with -0.5, Catmull and Rom's."""
    first = np.floor(at).astype(np.int64) - 1
    t = at - first - 1
    near = [(slope + 2) * d**3 - (slope + 3) * d**2 + 1 for d in (t, 1 - t)]
    far = [slope * (d**3 - 5 * d**2 + 8 * d - 4) for d in (t + 1, 2 - t)]
    return first[:, None] + np.arange(4), np.stack([far[0], *near, far[1]], 1)


def _lanczos_of_opencv(at: Doubles) -> tuple[Any, Doubles]:
    """Eight pixels, weighted by sinc(d) sinc(d / 4) and brought to a sum of 1."""
    first = np.floor(at).astype(np.int64) - 3
    distance = at[:, None] - (first[:, None] + np.arange(8))
    weights = np.sinc(distance) * np.sinc(distance / 4)
    return first[:, None] + np.arange(8), weights / weights.sum(1, keepdims=True)


KERNELS: dict[str, Kernel] = {
    "caffe.nearest": nearest,
    "caffe.linear": linear,
    "caffe.cubic": cubic,
    "cv2.linear": linear,
    "cv2.cubic": partial(cubic, slope=-0.75),
    "cv2.lanczos4": _lanczos_of_opencv,
}


@lru_cache(64)
def _averaged(old: float, new: int) -> Taps:
    """Return each output is the mean over the part of the input that it covers."""
    scale = old / new
    begin = np.arange(new) * scale
    first = np.floor(begin).astype(np.int64)
    where = first[:, None] + np.arange(int(np.ceil(scale)) + 1)
    covered = np.minimum(where + 1, (begin + scale)[:, None]) - np.maximum(where, begin[:, None])
    weights = np.clip(covered, 0, 1) * (where < old)
    # OpenCV leaves out slivers.
    weights[weights < 1e-3] = 0
    weights /= weights.sum(1, keepdims=True)
    return np.clip(where, 0, ceil(old) - 1).astype(np.int32), weights.astype(np.float32)


@lru_cache(64)
def _widened(old: float, new: int) -> Taps:
    """Return what OpenCV takes for its INTER_AREA where an axis grows: pixels with sharp edges."""
    scale = old / new
    first = np.floor(np.arange(new) * scale).astype(np.int64)
    t = np.arange(new) + 1 - (first + 1) / scale
    t = np.where(t <= 0, 0, t - np.floor(t))
    where = np.minimum(first[:, None] + np.arange(2), ceil(old) - 1)
    return where.astype(np.int32), np.stack([1 - t, t], 1).astype(np.float32)


def _by_pillow(image: Array, size: Size, way: str) -> Array:
    """Pillow itself; it works without the interpreter's lock."""
    from PIL import Image

    if image.dtype != np.uint8 and image.ndim == 3:
        planes = [_by_pillow(plane, size, way) for plane in image.transpose(2, 0, 1)]
        return np.stack(planes, 2)
    if image.dtype != np.uint8:
        image = image.astype(np.float32, copy=False)
    picture = Image.fromarray(np.ascontiguousarray(image))
    return np.asarray(resize_picture(picture, size, way))


def resize_picture(picture: Any, size: Size, way: str, part: Part | None = None) -> Any:
    """Return a picture of Pillow's, or the upper left ``part`` of it, in another size."""
    from PIL import Image

    box = None if part is None else (0, 0, part[1], part[0])
    return picture.resize(size[::-1], Image.Resampling[way.removeprefix("pil.").upper()], box=box)
