"""`resize_image`: the interpolation that pycaffe borrows, in numpy alone.

Images of one or three channels are resized as scikit-image did it in Caffe's day
(0.9 to 0.14): pixel centres are aligned, nothing is smoothed beforehand, and what lies
beyond the border counts as the image's smallest value.  Other channel counts are resized
as scipy's `zoom` does it: corner pixels are aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparknet.errors import ArrayError
from sparknet.loaders.resize import Kernel, centres, cubic, linear, nearest

Array = npt.NDArray[Any]
Taps = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Per output position: input positions, and their weights."""


def resize_image(im: Array, new_dims: Sequence[int], interp_order: int = 1) -> Array:
    """Return an (H, W, K) image at `new_dims` = (height, width), as float32.

    `interp_order` is 0 (nearest), 1 (linear) or 3 (cubic, for one or three
    channels).
    """
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
