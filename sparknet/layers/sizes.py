"""Sizes: the shape properties that every blob has, wherever its values lie."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sparknet.errors import ArrayError
from sparknet.layers.layer import Shape, count, shape_text


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
