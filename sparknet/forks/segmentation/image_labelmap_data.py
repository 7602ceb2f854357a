"""ImageLabelmapData: pictures with maps of edges."""

from __future__ import annotations

import numpy as np

from sparknet.forks.segmentation.dense_image_data import mean_of, picture_shape
from sparknet.layers.layer import Plan, exactly
from sparknet.layers.source_layer import SourceLayer


class ImageLabelmapData(SourceLayer):
    """image_labelmap_data_layer.cpp of HED; a line of the list is `picture map`.

    Top 1 is N x 1 x H x W: 1 where the map is brighter than half, 0 elsewhere.
    Values: those of DenseImageData.
    """

    type = "ImageLabelmapData"
    field = "image_data_param"
    fields = ("transform_param",)
    tops = exactly(2)
    reads = batches = True
    copied = ("source", "root_folder", "shuffle", "rand_skip", "is_color")

    def survey(self) -> Plan:
        options, transform = self.options, self.parameter.transform_param
        batch = self.batch(options.batch_size)
        size = self.new_size(options)
        channels, *stored = picture_shape(self, options)
        crop = (transform.crop_size,) * 2 if transform.crop_size else None
        high, wide = crop or size or stored
        if crop and min(size or stored) < crop[0]:
            self.fail(f"crop_size {crop[0]} is larger than the pictures")
        values = {
            "batch_size": batch,
            "size": size,
            "crop": crop,
            "mirror": transform.mirror,
            "scale": transform.scale,
            "scale_factors": (),
            "mean": means(self, channels),
            "label_type": "pixel",
            "label_way": "cv2.linear",
            "halves": True,
            "ignore_label": 0,
            "divisor": 1,
        }
        return Plan(((batch, channels, high, wide), (batch, 1, high, wide)), values=values)


def means(layer: SourceLayer, channels: int) -> object:
    """The mean of transform_param, height x width x channels; None where there is none."""
    transform = layer.parameter.transform_param
    if transform.HasField("mean_file"):
        return mean_of(layer, transform.mean_file)
    if len(transform.mean_value) not in (0, 1, channels):
        layer.fail(
            f"needs one mean_value or one for each of the {channels} channels; "
            f"there are {len(transform.mean_value)}"
        )
    if not transform.mean_value:
        return None
    return np.array(transform.mean_value, np.float32).reshape(1, 1, -1)
