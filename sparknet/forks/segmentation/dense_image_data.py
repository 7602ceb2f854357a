"""DenseImageData: batches from a list of pictures and of pictures of their labels."""

from __future__ import annotations

from typing import Any

from sparknet.forks.segmentation.readers.labelled_pictures import read_pairs
from sparknet.layers.layer import Plan, Shape, exactly
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.image import image_shape
from sparknet.loaders.transform import mean_image
from sparknet.proto.untrusted import check_trusted


class DenseImageData(SourceLayer):
    """dense_image_data_layer.cpp of SegNet and ENet; a line of the list is `picture labels`.

    Top 1 is N x 1 x H x W.  Crops are random in TRAIN and central in TEST; label_divide_factor
    divides the labels.  Values: source, root_folder, batch_size, shuffle, rand_skip, size (new
    height and width; none: as stored), crop, is_color, mirror, mean, divisor, and those that
    `loaders.labelled_pictures` reads.
    """

    type = "DenseImageData"
    field = "dense_image_data_param"
    tops = exactly(2)
    reads = batches = True
    copied = ("source", "root_folder", "shuffle", "rand_skip", "is_color", "mirror")

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        size, crop = self._pair("new_height", "new_width"), self._pair("crop_height", "crop_width")
        channels, *stored = picture_shape(self, options)
        high, wide = crop or size or stored
        if crop and any(c > s for c, s in zip(crop, size or stored, strict=True)):
            self.fail(f"the crop {high} x {wide} is larger than the pictures")
        values = {
            "batch_size": batch,
            "size": size,
            "crop": crop,
            "scale": 1.0,
            "scale_factors": (),
            "mean": mean_of(self, options.mean_file) if options.HasField("mean_file") else None,
            "label_type": "pixel",
            "ignore_label": 0,
            "divisor": options.label_divide_factor,
        }
        tops: tuple[Shape, ...] = ((batch, channels, high, wide), (batch, 1, high, wide))
        return Plan(tops=tops, values=values)

    def _pair(self, high: str, wide: str) -> tuple[int, int] | None:
        found = (getattr(self.options, high), getattr(self.options, wide))
        if any(found) and not all(found):
            self.fail(f"needs {high} and {wide} together; they are {found[0]} and {found[1]}")
        return found if all(found) else None


def picture_shape(layer: SourceLayer, options: Any, two: bool = True) -> tuple[int, int, int]:
    """Channels, height and width of the first picture of a list."""
    with layer.reading(f"the list '{options.source}'"):
        pairs = read_pairs(options.source, two)
    with layer.reading("the first picture"):
        _, high, wide = image_shape(options.root_folder + pairs[0][0])
    return (3 if options.is_color else 1), high, wide


def mean_of(layer: SourceLayer, path: str) -> Any:
    """The mean of a file, height x width x channels."""
    check_trusted(layer.parameter, "to read the mean file")
    try:
        return mean_image(path).transpose(1, 2, 0)
    except OSError as error:
        layer.fail(f"the mean file cannot be read: {error}")
