"""The base of layers that make blobs from nothing: no bottom, no gradient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from sparknet.errors import SpecError, clean
from sparknet.layers.layer import (
    MAX_COUNT,
    TRAIN,
    Layer,
    Plan,
    Shape,
    at_least,
    exactly,
    shape_text,
)
from sparknet.loaders.transform import FIELDS, RandomSize, mean_image, refuse_foreign
from sparknet.proto import caffe_pb2
from sparknet.proto.untrusted import UNTRUSTED, check_trusted


class SourceLayer(Layer):
    """A layer without bottoms.  Its files are read once, for shapes, as in Caffe's set-up."""

    bottoms = exactly(0)
    tops = at_least(1)
    has_gradient = False
    holds_records = True
    reads_files: ClassVar[bool] = False
    """It has a file, which gives the shape of records where no data is fed."""
    fills_itself: ClassVar[bool] = False
    """It makes its own values and need not be fed."""
    has_batch_size: ClassVar[bool] = False
    """Its options have batch_size."""
    has_images: ClassVar[bool] = False
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
        """Return the plan for `infer`; called once."""

    def declared(self, shape: caffe_pb2.BlobShape) -> Shape:
        """Return a ``shape { dim: ... }`` as written; `Layer.plan` checks its sizes."""
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


Array = np.ndarray[Any, np.dtype[np.float32]]


class TransformParam:
    """Crop, mean, scale and mirror, checked against the data.

    `sized` layers resize images by chance where Intel's or NVIDIA's fields ask for it."""

    def __init__(
        self, layer: Layer, options: caffe_pb2.TransformationParameter, sized: bool = False
    ) -> None:
        self.layer, self.options = layer, options
        self.crop_size: int = options.crop_size
        self.mean_values = tuple(float(value) for value in options.mean_value)
        try:
            refuse_foreign(options, FIELDS if sized else ())
        except SpecError as error:
            layer.fail(str(error))
        if options.HasField("mean_file") and self.mean_values:
            layer.fail("transform_param takes either mean_file or mean_value; not both")
        self.mean = self._mean(options.mean_file) if options.HasField("mean_file") else None
        self.random_size = RandomSize.of(options, layer.phase == TRAIN) if sized else None
        if self.random_size:
            self._check_random_size()

    @property
    def color(self) -> bool | None:
        """Whether encoded images become colour or grey; None: as stored."""
        if self.options.force_color or self.options.force_gray:
            return bool(self.options.force_color)
        return None

    def check_color(self) -> None:
        """These two apply to encoded images only."""
        if self.options.force_color and self.options.force_gray:
            self.layer.fail("transform_param cannot have force_color and force_gray together")

    def output(self, stored: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the shape of one item after the transformation (channels, height, width)."""
        channels, height, width = stored
        if min(stored) < 1:
            self.layer.fail(f"the data is empty: its first item is {shape_text(stored)}")
        self.check_mean_values(channels)
        if self.random_size:
            return channels, self.crop_size, self.crop_size
        if self.mean is not None and self.mean.shape != stored:
            self.layer.fail(
                f"the mean file '{self.options.mean_file}' is {shape_text(self.mean.shape)}, "
                f"but the data is {shape_text(stored)}"
            )
        crop = self.crop_size
        if not crop:
            return stored
        if crop > height or crop > width:
            self.layer.fail(f"crop_size {crop} is larger than the data, {height} x {width}")
        return channels, crop, crop

    def values(self) -> dict[str, Any]:
        options = self.options
        names = ("crop_size", "scale", "mirror", "force_color", "force_gray")
        resolved: dict[str, Any] = {name: getattr(options, name) for name in names}
        return {
            **resolved,
            "mean": self.mean,
            "mean_values": self.mean_values,
            "random_size": self.random_size,
        }

    def _check_random_size(self) -> None:
        """Refuse what a crop makes impossible: it takes the middle of a mean image."""
        crop, options = self.crop_size, self.options
        if crop < 1:
            self.layer.fail("needs a crop_size in transform_param, where sizes are random")
        how = options.random_aspect_ratio_param
        if not 0 < how.min_area_ratio <= how.max_area_ratio <= 1 or not how.aspect_ratio_change > 0:
            self.layer.fail(
                "random_aspect_ratio_param needs min_area_ratio and max_area_ratio above 0, at "
                "most 1 and in order, and a positive aspect_ratio_change"
            )
        if self.mean is not None:
            free = [side - crop for side in self.mean.shape[1:]]
            if min(free) < 0:
                self.layer.fail(f"the mean file is {shape_text(self.mean.shape)}; the crop {crop}")
            top, left = (more // 2 for more in free)
            middle = self.mean[:, top : top + crop, left : left + crop]
            self.mean = np.ascontiguousarray(middle)

    def check_mean_values(self, channels: int) -> None:
        if len(self.mean_values) not in (0, 1, channels):
            self.layer.fail(
                f"needs one mean_value or one for each of the {channels} channels; "
                f"there are {len(self.mean_values)}"
            )

    def _mean(self, path: str) -> Array:
        check_trusted(self.layer.parameter, f"to read the mean file '{clean(path)}'")
        try:
            return mean_image(path)
        except OSError as error:
            self.layer.fail(f"the mean file cannot be read: {error}")
