"""SegData: pictures with a label for each pixel, one at a time, in sizes by chance."""

from __future__ import annotations

from sparknet.forks.segmentation.image_labelmap_data import means
from sparknet.forks.segmentation.readers.labelled_pictures import read_pairs
from sparknet.layers.layer import Plan, exactly
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.image import image_shape


class SegData(SourceLayer):
    """seg_data_layer.cpp of yjxiong/caffe; a line of the list is `picture labels`.

    Batches of one picture, scaled by a number between the two scale_ratios, of which a part of any
    place is taken whose sides are multiples of `stride`, at most upper_size, or upper_height and
    upper_width.  With `balance` a part of which one label has more than four fifths is drawn
    again, up to ten times.  Values: those of DenseImageData, stride, scales, most, balance.
    """

    type = "SegData"
    field = "seg_data_param"
    fields = ("transform_param",)
    tops = exactly(2)
    reads = True
    copied = ("source", "shuffle", "balance")

    def survey(self) -> Plan:
        options, transform = self.options, self.parameter.transform_param
        scales = tuple(transform.scale_ratios) if len(transform.scale_ratios) == 2 else (1, 1)
        if transform.stride < 1 or not 0 < scales[0] <= scales[1] < float("inf"):
            self.fail("needs a positive stride, and scale_ratios that are positive and in order")
        with self.reading(f"the list '{options.source}'"):
            pairs = read_pairs(options.source)
        with self.reading("the first picture"):
            _, *stored = image_shape(options.root_dir + pairs[0][0])
        most = None
        if transform.HasField("upper_size"):
            most = (transform.upper_size,) * 2
        elif transform.HasField("upper_height") and transform.HasField("upper_width"):
            most = (transform.upper_height, transform.upper_width)
        if most and min(most) < 1:
            self.fail(f"the upper sizes must be positive; they are {most[0]} and {most[1]}")
        high, wide = (side // transform.stride * transform.stride for side in stored)
        if most:
            high, wide = min(high, most[0]), min(wide, most[1])
        values = {
            "root_folder": options.root_dir,
            "batch_size": 1,
            "rand_skip": 0,
            "size": None,
            "is_color": True,
            "mirror": transform.mirror,
            "scale": transform.scale,
            "mean": means(self, 3),
            "label_type": "pixel",
            "ignore_label": 0,
            "divisor": 1,
            "stride": transform.stride,
            "scales": scales,
            "most": most,
        }
        return Plan(((1, 3, high, wide), (1, 1, high, wide)), values=values)
