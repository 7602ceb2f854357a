"""ROIAlign: regions at the corners of their bins, without rounding."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.faster_rcnn.regions import Regions
from sparknet.layers.layer import Plan, Shape, count, shape_text


class ROIAlign(Regions):
    """roi_align_layer.cpp of Cascade R-CNN.  A region is (image, x1, y1, x2, y2).

    The top has the values at the corners of pooled_h x pooled_w bins, one more than bins on each
    axis, found by bilinear interpolation and 0 outside the image; a Pooling of 2 x 2 corners
    with stride 1 usually follows.  Values: spatial_scale, pad_ratio.
    """

    type = "ROIAlign"
    field = "roi_pooling_param"
    copied = ("spatial_scale", "pad_ratio")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        size = self.pooled_size()
        if len(bottoms[0]) != 4 or not count(bottoms[0][2:]):
            self.fail(f"takes images of at least one pixel; the input is {shape_text(bottoms[0])}")
        regions = self.regions(bottoms)
        return Plan(((regions, bottoms[0][1], size[0] + 1, size[1] + 1),))
