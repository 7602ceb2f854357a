"""ROIPooling: regions of different sizes, each pooled to one size."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class ROIPooling(Layer):
    """roi_pooling_layer.cpp of Fast R-CNN.  A region is (image, x1, y1, x2, y2).

    ``pad_ratio``, of Cascade R-CNN, widens a region on each side by this share of its size.
    """

    type = "ROIPooling"
    labelled = True
    field = "roi_pooling_param"
    bottoms = exactly(2)

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        size = (options.pooled_h, options.pooled_w)
        if min(size) < 1:
            self.fail(f"pooled_h and pooled_w must be positive; they are {shape_text(size)}")
        channels = legacy_shape(self, bottoms[0], "the input")[1]
        regions = legacy_shape(self, bottoms[1], "the regions")
        if count(regions[1:]) != 5:
            self.fail(f"a region has 5 values; the regions are {shape_text(bottoms[1])}")
        values = {
            "pooled": size,
            "spatial_scale": options.spatial_scale,
            "pad_ratio": options.pad_ratio,
        }
        return Plan(((regions[0], channels, *size),), values=values)
