"""What ``transform_param`` does to shapes, and the checks of its fields.

The loaders transform the values (Caffe: data_transformer.cpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import SpecError, shown
from sparknet.layers.layer import TRAIN, Layer, shape_text
from sparknet.loaders.random_size import FIELDS, RandomSize
from sparknet.loaders.transform import mean_image, refuse_foreign
from sparknet.proto import caffe_pb2
from sparknet.proto.untrusted import check_trusted

Array = np.ndarray[Any, np.dtype[np.float32]]


class TransformParam:
    """Crop, mean, scale and mirror, checked against the data.

    `sized` layers resize images by chance where Intel's or NVIDIA's fields ask for it.
    Values: crop_size, scale, mirror, force_color, force_gray, mean (channels x height x
    width, from the file), mean_values (one or one for each channel), random_size; None and ()
    where absent.
    """

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
        """The shape of one item after the transformation (channels, height, width)."""
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
        """A crop makes images of all sizes alike; it takes the middle of a mean image."""
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
        check_trusted(self.layer.parameter, f"to read the mean file '{shown(path)}'")
        try:
            return mean_image(path)
        except OSError as error:
            self.layer.fail(f"the mean file cannot be read: {error}")
