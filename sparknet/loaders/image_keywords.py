"""ImageKeywords: the settings of `Preprocessing`, for objects in which they may be left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ImageKeywords:
    """None leaves a setting as `Preprocessing.of` finds it: docs/images.md."""

    resize: Any = None
    resize_mode: str | None = None
    pad: Any = None
    interpolation: str | None = None
    crop: Any = None
    color: str | None = None
    upright: bool | None = None
    mean: Any = None
    scale: float | None = None
    std: Any = None
    mirror: bool | str | None = None
