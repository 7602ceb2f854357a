"""The pixels of an opened image, as caffe.io.load_image reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import FileError

Array = np.ndarray[Any, Any]

LUMINANCE = np.array([0.2125, 0.7154, 0.0721])
"""The weights of red, green and blue (ITU-R BT.709) that pycaffe's image reader uses."""

_LIMITS = {"b": 1.0, "u1": 255.0, "u2": 65535.0}


def plain_pixels(picture: Any) -> Array:
    """Height x width of grey, or height x width x 3 of red, green and blue, in their own type."""
    mode = _plain_mode(picture)
    pixels = np.asarray(picture if picture.mode == mode else picture.convert(mode))
    # Pillow's name for 16-bit grey.
    return pixels.astype(np.uint16) if _is_16_bit(pixels) else pixels


def limit(pixels: Array, name: object) -> float:
    """The number that stands for white: the largest of the type; 1 for floating numbers."""
    found = _LIMITS.get(pixels.dtype.str[1:], 65535.0 if pixels.dtype == np.int32 else 1.0)
    if pixels.dtype.kind in "fi" and pixels.size:
        low, high = float(pixels.min()), float(pixels.max())
        if not (-found <= low and high <= found):
            raise FileError(name, "has pixel values outside the range that its type allows")
    return found


def _is_16_bit(pixels: Array) -> bool:
    if pixels.dtype != np.int32 or not pixels.size:
        return False
    return bool(pixels.min() >= 0 and pixels.max() < 1 << 16)


def _plain_mode(image: Any) -> str:
    """The mode in which an image's numbers are grey or RGB."""
    mode: str = image.mode
    if mode == "P":
        low, high = image.getextrema()
        used = np.array(image.getpalette("RGB")).reshape(-1, 3)[low : high + 1]
        return "L" if (used == used[:, :1]).all() else "RGB"
    if mode in ("1", "L", "RGB", "F", "I") or mode.startswith("I;16"):
        return "L" if mode == "1" else mode
    return "RGB"
