"""The base of layers that make blobs from nothing: no bottom, no gradient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from sparknet.layers.layer import MAX_COUNT, Layer, Plan, Shape, at_least, exactly
from sparknet.proto import caffe_pb2
from sparknet.proto.untrusted import UNTRUSTED


class SourceLayer(Layer):
    """A layer without bottoms.  Its files are read once, for shapes, as in Caffe's set-up."""

    bottoms = exactly(0)
    tops = at_least(1)
    gradient = False
    records = True
    reads: ClassVar[bool] = False
    """It has a file, which gives the shape of records where no data is fed."""
    fills: ClassVar[bool] = False
    """It makes its own values and need not be fed."""
    batches: ClassVar[bool] = False
    """Its options have batch_size."""
    pictures: ClassVar[bool] = False
    """Its tops are an image and its class number."""

    def __init__(self, parameter: caffe_pb2.LayerParameter, phase: int) -> None:
        super().__init__(parameter, phase)
        self._surveyed: Plan | None = None

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        if self._surveyed is None:
            self._surveyed = self.completed(self.survey())
        return self._surveyed

    @abstractmethod
    def survey(self) -> Plan:
        """The plan that `infer` returns; called once."""

    def declared(self, shape: caffe_pb2.BlobShape) -> Shape:
        """A ``shape { dim: ... }`` as written; `Layer.plan` checks its sizes."""
        return tuple(shape.dim)

    def batch(self, size: int) -> int:
        if not 0 < size <= MAX_COUNT:
            self.fail(f"batch_size {size} must be from 1 to {MAX_COUNT}")
        return size

    def new_size(self, options: Any) -> tuple[int, int] | None:
        """new_height and new_width; None where pictures keep their sizes."""
        high, wide = options.new_height, options.new_width
        if (high > 0) != (wide > 0):
            self.fail(f"needs new_height and new_width together; they are {high} and {wide}")
        return (high, wide) if high else None

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Name the layer where a file cannot be read."""
        try:
            if self.parameter.untrusted:
                raise PermissionError(UNTRUSTED)
            yield
        except OSError as error:
            self.fail(f"{what} cannot be read: {error}")
