"""The settings of `Preprocessing`: what each may be, and the sentence where it is not."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from sparknet.errors import FileError, SpecError, clean
from sparknet.loaders.transform import mean_image
from sparknet.proto.byte_source import read_file
from sparknet.proto.suggest import did_you_mean

Floats = np.ndarray[Any, np.dtype[np.float32]]
Size = tuple[int, int]
Mean = tuple[float, ...] | Floats

INTERPOLATIONS = {
    "caffe": ("nearest", "linear", "cubic"),
    "cv2": ("nearest", "linear", "cubic", "area"),
    "pil": ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"),
}
"""The libraries whose numbers are given, and their ways of resizing."""
MODES = ("exact", "shorter", "fit")
COLORS = ("bgr", "rgb", "grey")
LONGEST_SIDE = 1 << 14
_MOST_MEAN = 1 << 28


def _size(name: str, value: Any) -> Size | None:
    if value is None:
        return None
    sizes = (value, value) if isinstance(value, (int, np.integer)) else value
    try:
        size = tuple(sizes)
        height, width = (int(one) for one in size)
        whole = (height, width) == size and not any(isinstance(one, bool) for one in size)
    except (TypeError, ValueError):
        whole, height, width = False, 0, 0
    if not whole or not (0 < height <= LONGEST_SIDE and 0 < width <= LONGEST_SIDE):
        raise SpecError(
            f"{name} is {clean(repr(value))}: a height and a width are needed, "
            f"or one number, up to {LONGEST_SIDE}"
        )
    return height, width


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """Return one number, or one for each channel."""
    try:
        numbers = tuple(float(one) for one in np.asarray(value, np.float64).reshape(-1))
    except (TypeError, ValueError):
        numbers = ()
    if np.ndim(value) > 1 or not numbers or not all(map(isfinite, numbers)):
        raise SpecError(
            f"{name} is {clean(repr(value))}: one number, or one per channel, is needed"
        )
    return numbers


def _mean(name: str, value: Any) -> Mean | None:
    if value is None:
        return None
    if isinstance(value, (str, os.PathLike)):
        value = read_mean(os.fspath(value))
    if np.ndim(value) <= 1:
        return _numbers(name, value)
    image = np.array(value, np.float32)
    if image.ndim == 4 and len(image) == 1:
        image = image[0]
    if image.ndim != 3 or not image.size or not np.isfinite(image).all():
        shape = " x ".join(map(str, image.shape))
        raise SpecError(f"{name} is {shape}: channels x height x width of finite numbers is needed")
    image.flags.writeable = False
    return image


def read_mean(path: str) -> Floats:
    """Return the mean in a .binaryproto or a .npy: a picture, or a value a channel."""
    if not path.endswith(".npy"):
        return mean_image(path)
    try:
        data = io.BytesIO(read_file(path, _MOST_MEAN))
        mean: Floats = np.load(data, allow_pickle=False).astype(np.float32)
        return mean
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise FileError(path, f"is no array that can be read: {clean(error)}") from error


def _scale(name: str, value: Any) -> float:
    numbers = _numbers(name, value)
    if len(numbers) != 1:
        raise SpecError(f"{name} is {value!r}: one number is needed")
    return numbers[0]


def _std(name: str, value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = _numbers(name, value)
    if min(numbers) <= 0:
        raise SpecError(f"{name} is {value!r}: numbers above 0 are needed")
    return numbers


def _one_of(*known: Any) -> Any:
    def check(name: str, value: Any) -> Any:
        if not isinstance(value, (str, bool, type(None))) or value not in known:
            words = ", ".join(repr(one) for one in known)
            near = did_you_mean(value, [one for one in known if isinstance(one, str)])
            raise SpecError(f"{name} is {clean(repr(value))}, not one of {words}{near}")
        return value

    return check


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "resize": _size,
    "resize_mode": _one_of(*MODES),
    "pad": _numbers,
    "interpolation": _one_of(
        None, *(f"{library}.{way}" for library, ways in INTERPOLATIONS.items() for way in ways)
    ),
    "crop": _size,
    "color": _one_of(None, *COLORS),
    "upright": _one_of(False, True),
    "exact": _one_of(None, False, True),
    "mean": _mean,
    "scale": _scale,
    "std": _std,
    "mirror": _one_of(False, True, "always"),
}


Sides: TypeAlias = int | Sequence[int]
"""One number for both sides, or the height and the width."""
Channels: TypeAlias = float | Sequence[float]
"""One number, or one a channel."""
MeanKeyword: TypeAlias = Channels | np.ndarray[Any, Any] | str | os.PathLike[str]
"""Numbers, a picture, or the path of one (docs/images.md)."""


@dataclass(frozen=True, kw_only=True)
class ImageKeywords:
    """None leaves a setting as `Preprocessing.of` finds it: docs/images.md."""

    resize: Sides | None = None
    resize_mode: str | None = None
    pad: Channels | None = None
    interpolation: str | None = None
    crop: Sides | None = None
    color: str | None = None
    upright: bool | None = None
    exact: bool | None = None
    mean: MeanKeyword | None = None
    scale: float | None = None
    std: Channels | None = None
    mirror: bool | str | None = None
