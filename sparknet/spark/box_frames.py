"""Where a net's picture lies in the picture that a record holds, for boxes in its pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.loaders.image import open_image
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.spark.binary import Binary
from sparknet.spark.outputs import Array

if TYPE_CHECKING:
    import pyarrow as pa

Size = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class BoxFrames:
    """The pictures of a column, and what is done to them before the net sees them."""

    column: str
    shape: tuple[int, ...]
    """The net's own picture: channels, height, width."""
    preprocessing: Preprocessing
    kinds: Binary
    """What tells raw pictures from encoded ones."""

    def frames(self, values: pa.Array) -> Array:
        """For each picture (left, top, width, height): where the net's picture lies in its own
        pixels."""
        net = self.shape[-2], self.shape[-1]
        found = [frame(self.preprocessing, size, net) for size in self._sizes(values)]
        return np.array(found, np.float64).reshape(-1, 4)

    def _sizes(self, values: pa.Array) -> list[Size]:
        import pyarrow.types as kind

        if kind.is_struct(values.type):
            sides = [values.field(name).to_pylist() for name in ("height", "width")]
            return list(zip(*sides, strict=True))
        return [self._size(value.as_py()) for value in values]

    def _size(self, data: bytes) -> Size:
        raw = self.kinds.raw_of(data)
        if raw is not None:
            return raw.shape[-2], raw.shape[-1]
        return encoded_size(data, self.preprocessing.upright)


def encoded_size(data: bytes, upright: bool) -> Size:
    """The size that an encoded picture says it has."""
    with open_image(data, "the record") as image:
        width, height = image.size
        try:
            turned = upright and image.getexif().get(_ORIENTATION, 1) > 4
        except (OSError, ValueError, SyntaxError) as error:
            raise SparkError(f"the record has damaged EXIF data: {error}") from error
    return (width, height) if turned else (height, width)


_ORIENTATION = 274
"""EXIF's number for how a picture is turned; from 5 on its sides are exchanged."""


def frame(given: Preprocessing, size: Size, net: Size) -> tuple[float, float, float, float]:
    """(left, top, width, height) of the net's picture in the pixels of one of this size."""
    resized = given.resize or size
    scales = [new / old for new, old in zip(resized, size, strict=True)]
    if given.resize and given.resize_mode != "exact":
        scales = [(max if given.resize_mode == "shorter" else min)(scales)] * 2
    seen = given.crop or resized
    found: list[Any] = []
    for scale, old, new, part in zip(scales, size, resized, seen, strict=True):
        # Where the whole picture begins in what the net sees.
        begin = (new - old * scale) / 2 - (new - part) / 2
        found.append((-begin / scale, part / scale))
    (top, height), (left, width) = found
    return left, top, width, height
