"""What ``transform_param`` does to shapes, and the checks of its fields.

The loaders transform the values (Caffe: data_transformer.cpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import SpecError, shown
from sparknet.layers.layer import Layer, shape_text
from sparknet.loaders.transform import mean_image, refuse_foreign
from sparknet.proto import caffe_pb2
from sparknet.proto.trust import check_trusted

Array = np.ndarray[Any, np.dtype[np.float32]]


class TransformParam:
    """Crop, mean, scale and mirror, checked against the data.

    Values: crop_size, scale, mirror, force_color, force_gray, mean (channels x height x
    width, from the file), mean_values (one or one for each channel); None and () where absent.
    """

    def __init__(self, layer: Layer, options: caffe_pb2.TransformationParameter) -> None:
        self.layer, self.options = layer, options
        self.crop_size: int = options.crop_size
        self.mean_values = tuple(float(value) for value in options.mean_value)
        try:
            refuse_foreign(options)
        except SpecError as error:
            layer.fail(str(error))
        if options.HasField("mean_file") and self.mean_values:
            layer.fail("transform_param takes either mean_file or mean_value; not both")
        self.mean = self._mean(options.mean_file) if options.HasField("mean_file") else None

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
        return {**resolved, "mean": self.mean, "mean_values": self.mean_values}

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
