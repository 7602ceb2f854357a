"""Reading an image file, and the ten crops of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparknet.errors import ArrayError, FileError, clean
from sparknet.loaders.image import LUMINANCE, limit, open_image, plain_pixels

Array = npt.NDArray[Any]


def load_image(filename: str | os.PathLike[str], color: bool = True) -> Array:
    """Return an image file as float32 in [0, 1]: (H, W, 3) RGB, or (H, W, 1) luminance.

    Gray images become RGB when `color` is true; an alpha channel is dropped.
    """
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
