"""Binary columns: raw arrays, which are told by their length, and encoded images.

What a value is depends on that value alone, never on the others of its batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image_arrays import ImageArrays, stacked
from sparknet.loaders.image_decoding import open_image
from sparknet.net.feed import raising

Array = np.ndarray[Any, Any]
Shape = tuple[int | None, ...]
"""The shape of one record; None is any size, which a crop makes the net's."""
Sizes = tuple[int, ...]

KINDS = (np.dtype(np.uint8), np.dtype(np.float32))
_MAGIC = (
    b"\xff\xd8\xff",  # JPEG
    b"\x89PNG\r\n",
    b"GIF8",
    b"BM",
    b"RIFF",  # WebP
    b"II*\0",  # TIFF
    b"MM\0*",
    *(b"P%d\n" % kind for kind in range(1, 7)),
)


@dataclass(frozen=True)
class Binary:
    """How an input takes the values of a binary column."""

    shape: Shape
    images: ImageArrays | None = None
    """What decodes images, if the input takes images."""
    told: Sizes | None = None
    """The shape of raw records, where their column says it."""

    def sizes(self, length: int) -> Iterator[Sizes]:
        """Yield the shapes that a raw array of so many values may have."""
        if self.told is not None:
            yield self.told
        fixed = tuple(size for size in self.shape if size is not None)
        if len(fixed) == len(self.shape):
            yield fixed
            return
        how = None if self.images is None else self.images.how
        if how is not None and how.resize is not None:
            # Any other size would be a guess, and a damaged file could be one of that size.
            yield from ((*fixed, *size) for size in (how.resize, how.crop) if size is not None)
            return
        side = math.isqrt(length // math.prod(fixed)) if all(fixed) else 0
        if side >= (1 if how is None or how.crop is None else max(how.crop)):
            yield (*fixed, side, side)

    def raw(self, length: int) -> tuple[np.dtype[Any], Sizes] | None:
        """Return the type and the shape of a raw array of so many bytes; None where there is
        none.
        """
        sizes = [*self.sizes(length)]
        for kind in KINDS:
            for size in sizes:
                if length == math.prod(size) * kind.itemsize:
                    return kind, size
        return None

    def raw_of(self, value: bytes) -> Array | None:
        """Return the raw array that a value is; None of an encoded image, and of what is
        neither.
        """
        raw = self.raw(len(value))
        if raw is None or self.is_encoded(value):
            return None
        kind, size = raw
        return np.frombuffer(value, kind).reshape(size)

    def rows(self, values: Array) -> Array | None:
        """Values of one length, a row of bytes each, as raw arrays; None where some are encoded."""
        raw = self.raw(values.shape[1])
        if raw is None or self._has_encoded(values):
            return None
        kind, size = raw
        return values.view(kind).reshape(len(values), *size)

    def array(self, value: bytes | None, name: str) -> Array:
        """Return the image that a value is, sized as all images are."""
        assert self.images is not None
        raw = None if value is None else self.raw_of(value)
        if raw is None:
            return self.images.of_file(value, name)
        return self.images.of_raw(raw) if None in self.shape else raw

    def resized(self, rows: Array) -> Array:
        """Raw images of any size in the one that images are resized to, if there is one."""
        images = self.images
        size = None if images is None else images.how.resize
        if images is None or size in (None, rows.shape[2:]) or None not in self.shape:
            return rows
        return stacked(raising(images.map(lambda row: images.of_raw(rows[row]), len(rows))))

    def is_encoded(self, value: bytes) -> bool:
        """Return whether a value is an image file: raw pixels may begin as one does."""
        if self.images is None or not value.startswith(_MAGIC):
            return False
        try:
            open_image(value, "").close()
        except FileError:
            return False
        return True

    # -- inside --------------------------------------------------------------------------

    def _has_encoded(self, values: Array) -> bool:
        """Return whether a row is encoded; few begin as an image does."""
        if self.images is None:
            return False
        begins = np.zeros(len(values), bool)
        for magic in _MAGIC:
            head = values[:, : len(magic)]
            if head.shape[1] == len(magic):
                begins |= (head == np.frombuffer(magic, np.uint8)).all(1)
        return any(self.is_encoded(values[row].tobytes()) for row in np.flatnonzero(begins))
