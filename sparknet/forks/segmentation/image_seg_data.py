"""ImageSegData: pictures with a label for each pixel, for DeepLab and PSPNet."""

from __future__ import annotations

from sparknet.forks.segmentation.dense_image_data import picture_shape
from sparknet.forks.segmentation.image_labelmap_data import means
from sparknet.layers.layer import Plan, Shape, between
from sparknet.layers.source_layer import SourceLayer


class ImageSegData(SourceLayer):
    """image_seg_data_layer.cpp of DeepLab; a line of the list is `picture labels`.

    label_type PIXEL takes a picture of labels, IMAGE one number for all pixels, NONE ignore_label.
    A picture smaller than the crop is filled up with mean_value, its labels with ignore_label;
    ``scale_factors`` of transform_param resize it by chance.  Top 2 has the height and the width
    of each picture within the crop.  Values: those of DenseImageData.
    """

    type = "ImageSegData"
    field = "image_data_param"
    fields = ("transform_param",)
    tops = between(2, 3)
    reads = batches = True
    copied = ("source", "root_folder", "shuffle", "rand_skip", "is_color", "ignore_label")

    def survey(self) -> Plan:
        options, transform = self.options, self.parameter.transform_param
        batch = self.batch(options.batch_size)
        crop = (
            transform.crop_height or transform.crop_size,
            transform.crop_width or transform.crop_size,
        )
        if not all(crop):
            self.fail("needs crop_size, or crop_height and crop_width, in transform_param")
        size = self.new_size(options)
        kind = self.choice("label_type") if options.has_label else "none"
        channels = picture_shape(self, options, two=kind != "none")[0]
        values = {
            "batch_size": batch,
            "size": size,
            "crop": crop,
            "mirror": transform.mirror,
            "scale": transform.scale,
            "scale_factors": tuple(transform.scale_factors),
            "mean": means(self, channels),
            "label_type": kind,
            "divisor": 1,
        }
        tops: tuple[Shape, ...] = ((batch, channels, *crop), (batch, 1, *crop))
        if len(self.parameter.top) > 2:
            tops += ((batch, 1, 1, 2),)
        return Plan(tops=tops, values=values)
