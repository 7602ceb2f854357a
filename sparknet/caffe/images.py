"""Reading an image file, and the ten crops of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparknet.errors import ArrayError, FileError, shown
from sparknet.loaders.image import open_image

Array = npt.NDArray[Any]

LUMINANCE = np.array([0.2125, 0.7154, 0.0721])
"""The weights of red, green and blue (ITU-R BT.709) that pycaffe's image reader uses."""

_SCALES = {"b": 1.0, "u1": 255.0, "u2": 65535.0}


def load_image(filename: str | os.PathLike[str], color: bool = True) -> Array:
    """An image file as float32 in [0, 1]: (H, W, 3) RGB, or (H, W, 1) luminance.

    Gray images become RGB when `color` is true; an alpha channel is dropped.
    """
    image = _unit(_pixels(filename), filename)
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
            mode = _plain_mode(image)
            return np.asarray(image if image.mode == mode else image.convert(mode))
        except MemoryError:
            raise
        except Exception as error:  # Pillow raises many a builtin exception for a damaged file
            raise FileError(filename, f"is a damaged image: {shown(error)}") from error


def _plain_mode(image: Any) -> str:
    """The mode in which an image's numbers are gray or RGB."""
    mode: str = image.mode
    if mode == "P":
        low, high = image.getextrema()
        used = np.array(image.getpalette("RGB")).reshape(-1, 3)[low : high + 1]
        return "L" if (used == used[:, :1]).all() else "RGB"
    if mode in ("1", "L", "RGB", "F", "I") or mode.startswith("I;16"):
        return "L" if mode == "1" else mode
    return "RGB"


def _unit(pixels: Array, filename: object) -> npt.NDArray[np.float64]:
    """Integers to [0, 1] by the range of their type."""
    scale = _SCALES.get(pixels.dtype.str[1:])
    if pixels.dtype == np.int32:
        # Pillow's name for 16-bit gray.
        scale = 65535.0
    image = pixels.astype(np.float64) / (scale or 1.0)
    if image.size and (image.min() < -1.0 or image.max() > 1.0):
        raise FileError(filename, "has pixel values outside the range that its type allows")
    return image


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
