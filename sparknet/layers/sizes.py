"""Sizes: the shape properties that every blob has, wherever its values lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import index
from typing import Any

from sparknet.errors import ArgumentError, ArrayError, shown
from sparknet.layers.layer import MAX_AXES, MAX_COUNT, Shape, count, shape_text


class Sizes(ABC):
    """The number of values of a shape, and its first four axes under their old names."""

    @property
    @abstractmethod
    def shape(self) -> Shape: ...

    @property
    def count(self) -> int:
        return count(self.shape)

    @property
    def num(self) -> int:
        return self._legacy(0)

    @property
    def channels(self) -> int:
        return self._legacy(1)

    @property
    def height(self) -> int:
        return self._legacy(2)

    @property
    def width(self) -> int:
        return self._legacy(3)

    def _legacy(self, axis: int) -> int:
        """Caffe: blob.hpp, LegacyShape: axes beyond the last have size 1; at most four axes."""
        shape = self.shape
        if len(shape) > 4:
            raise ArrayError(
                f"num, channels, height and width are for at most 4 axes; "
                f"the blob is {shape_text(shape)}"
            )
        return shape[axis] if axis < len(shape) else 1


def blob_shape(sizes: Sequence[Any]) -> Shape:
    """A shape that a blob can have, of whole numbers.  Caffe: blob.cpp, Reshape."""
    shape = tuple(map(_size, sizes))
    fits = len(shape) <= MAX_AXES and min(shape, default=0) >= 0 and count(shape) <= MAX_COUNT
    if not fits:
        raise ArrayError(f"no blob can have the shape {shape_text(shape)}")
    return shape


def _size(size: Any) -> int:
    try:
        return int(index(size))
    except TypeError:
        told = f"{shown(repr(size))} ({type(size).__name__})"
        raise ArgumentError(f"a size of a blob must be a whole number; it is {told}") from None
