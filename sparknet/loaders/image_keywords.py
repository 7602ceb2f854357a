"""ImageKeywords: the settings of `Preprocessing`, for objects in which they may be left out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Sides: TypeAlias = int | Sequence[int]
"""One number for both sides, or the height and the width."""
Channels: TypeAlias = float | Sequence[float]
"""One number, or one a channel."""
Mean: TypeAlias = Channels | np.ndarray[Any, Any] | str | os.PathLike[str]
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
    mean: Mean | None = None
    scale: float | None = None
    std: Channels | None = None
    mirror: bool | str | None = None
