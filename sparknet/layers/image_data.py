"""ImageData: batches from a list of image files and labels."""

from __future__ import annotations

from typing import Any

from sparknet.layers.layer import Plan, exactly
from sparknet.layers.source_layer import SourceLayer
from sparknet.layers.transform_param import TransformParam
from sparknet.loaders.image import image_shape, read_list


class ImageData(SourceLayer):
    """The first image gives the shape (Caffe: image_data_layer.cpp).

    Values: source, root_folder, batch_size, shuffle, rand_skip, is_color, new_height,
    new_width (0, 0: as stored), and those of `TransformParam`.
    """

    type = "ImageData"
    stock = True
    field = "image_data_param"
    fields = ("transform_param",)
    tops = exactly(2)
    reads = batches = pictures = True
    copied = (
        "new_height",
        "new_width",
        "source",
        "root_folder",
        "shuffle",
        "rand_skip",
        "is_color",
    )

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        transform = TransformParam(self, self.parameter.transform_param, sized=True)
        channels, height, width = transform.output(self._image_shape())
        values = {
            "batch_size": batch,
            **transform.values(),
        }
        return Plan(tops=((batch, channels, height, width), (batch,)), values=values)

    def data_set(self) -> Any:
        from sparknet.loaders.opening import open_records

        options = self.options
        how = {"size": self.new_size(options), "color": options.is_color}
        return open_records(options.source, options.root_folder, kind="images", **how)

    def _image_shape(self) -> tuple[int, int, int]:
        options = self.options
        size = self.new_size(options)
        channels = 3 if options.is_color else 1
        with self.reading(f"the image list '{options.source}'"):
            name, _ = next(iter(read_list(options.source)), (None, 0))
        if name is None:
            self.fail(f"the image list '{options.source}' holds no image")
        with self.reading("the first image"):
            _, height, width = image_shape(options.root_folder + name)
        return (channels, *size) if size else (channels, height, width)
