"""Images as pycaffe reads, resizes and crops them, with numpy and Pillow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparknet.errors import ArrayError, FileError, clean
from sparknet.loaders.image_decoding import LUMINANCE, limit, open_image, plain_pixels
from sparknet.loaders.resize import Kernel, centres, cubic, linear, nearest

Array = npt.NDArray[Any]


def load_image(filename: str | os.PathLike[str], color: bool = True) -> Array:
    """Return an image file as float32 in [0, 1]: (H, W, 3) RGB, or (H, W, 1) luminance."""
    pixels = _pixels(filename)
    image = pixels.astype(np.float64) / limit(pixels, filename)
    if image.ndim == 3:
        image = image[:, :, :3]
        if not color:
            image = image @ LUMINANCE
    if image.ndim == 2:
        image = image[:, :, np.newaxis]
        if color:
            image = np.tile(image, (1, 1, 3))
    return image.astype(np.float32)


def _pixels(filename: str | os.PathLike[str]) -> Array:
    with open_image(os.fspath(filename), str(filename)) as image:
        try:
            return plain_pixels(image)
        except MemoryError:
            raise
        except Exception as error:  # Pillow raises many a builtin exception for a damaged file
            raise FileError(filename, f"is a damaged image: {clean(error)}") from error


def oversample(images: Sequence[Array], crop_dims: Sequence[int]) -> Array:
    """Ten crops of every (H, W, K) image: four corners and centre, then their mirrors."""
    height, width, channels = images[0].shape
    rows, columns = (int(size) for size in crop_dims)
    if not (0 < rows <= height and 0 < columns <= width):
        raise ArrayError(f"oversample: no crop of ({rows}, {columns}) from ({height}, {width})")
    starts = [(y, x) for y in (0, height - rows) for x in (0, width - columns)]
    starts.append((int((height - rows) / 2), int((width - columns) / 2)))
    crops = np.empty((10 * len(images), rows, columns, channels), np.float32)
    for index, image in enumerate(images):
        if image.shape != images[0].shape:
            raise ArrayError(f"oversample: images of {images[0].shape} and {image.shape}")
        ten = crops[10 * index : 10 * index + 10]
        for place, (y, x) in enumerate(starts):
            ten[place] = image[y : y + rows, x : x + columns]
        ten[5:] = ten[:5, :, ::-1]
    return crops


Taps = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Per output position: input positions, and their weights."""


def resize_image(im: Array, new_dims: Sequence[int], interp_order: int = 1) -> Array:
    """Return an (H, W, K) image at (height, width); order 0 nearest, 1 linear, 3 cubic."""
    height, width = _checked(im, new_dims)
    if im.shape[-1] not in (1, 3):
        return _zoomed(im, (height, width), interp_order)
    if interp_order not in _KERNELS:
        raise ArrayError(f"resize_image: interpolation order {interp_order} is not 0, 1 or 3")
    low, high = float(im.min()), float(im.max())
    if not high > low:
        return np.full((height, width, im.shape[-1]), low, np.float32)
    out = im.astype(np.float64) - low
    for axis, size in enumerate((height, width)):
        out = _apply(out, axis, _centred(im.shape[axis], size, _KERNELS[interp_order]))
    return np.clip(out + low, low, high).astype(np.float32)


def _checked(im: Array, new_dims: Sequence[int]) -> tuple[int, int]:
    if im.ndim != 3 or 0 in im.shape:
        raise ArrayError(f"resize_image takes an (H, W, K) image, not an array of {im.shape}")
    dims = tuple(int(size) for size in new_dims)
    if len(dims) != 2 or min(dims) < 1:
        raise ArrayError(f"resize_image takes a new (height, width), not {dims}")
    return dims[0], dims[1]


_KERNELS: dict[int, Kernel] = {0: nearest, 1: linear, 3: cubic}


def _centred(old: int, new: int, kernel: Kernel) -> Taps:
    where, weights = kernel(centres(old, new))
    inside = (where >= 0) & (where < old)
    return np.clip(where, 0, old - 1), weights * inside


def _cornered(old: int, new: int, kernel: Kernel) -> Taps:
    step = (old - 1) / (new - 1) if new > 1 else 0.0
    where, weights = kernel(np.arange(new, dtype=np.float64) * step)
    return np.clip(where, 0, old - 1), weights


def _zoomed(im: Array, dims: tuple[int, int], order: int) -> Array:
    if order not in (0, 1):
        channels = im.shape[-1]
        raise ArrayError(
            f"resize_image: interpolation order {order} is not 0 or 1, "
            f"all that an image of {channels} channels can be resized with"
        )
    out = im.astype(np.float64)
    for axis, size in enumerate(dims):
        out = _apply(out, axis, _cornered(im.shape[axis], size, _KERNELS[order]))
    return out.astype(np.float32)


def _apply(image: npt.NDArray[np.float64], axis: int, taps: Taps) -> npt.NDArray[np.float64]:
    where, weights = taps
    spread = (-1, 1, 1) if axis == 0 else (1, -1, 1)
    total = 0.0
    for index, weight in zip(where.T, weights.T, strict=True):
        total = total + np.take(image, index, axis) * weight.reshape(spread)
    return np.asarray(total)
