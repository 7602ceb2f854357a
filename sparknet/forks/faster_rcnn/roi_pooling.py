"""ROIPooling: regions of different sizes, each pooled to one size."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.faster_rcnn.regions import Regions
from sparknet.layers.layer import Plan, Shape
from sparknet.layers.legacy_shape import legacy_shape


class ROIPooling(Regions):
    """roi_pooling_layer.cpp of Fast R-CNN.  A region is (image, x1, y1, x2, y2).

    ``pad_ratio``, of Cascade R-CNN, widens a region on each side by this share of its size.
    """

    type = "ROIPooling"
    field = "roi_pooling_param"
    copied = ("spatial_scale", "pad_ratio")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        size = self.pooled_size()
        channels = legacy_shape(self, bottoms[0], "the input")[1]
        regions = self.regions(bottoms)
        values = {"pooled": size}
        return Plan(((regions, channels, *size),), values=values)
