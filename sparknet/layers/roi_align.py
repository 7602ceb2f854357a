"""ROIAlign: regions at the corners of their bins, without rounding."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class ROIAlign(Layer):
    """roi_align_layer.cpp of Cascade R-CNN.  A region is (image, x1, y1, x2, y2).

    The top has the values at the corners of pooled_h x pooled_w bins, one more than bins on each
    axis, found by bilinear interpolation and 0 outside the image; a Pooling of 2 x 2 corners
    with stride 1 usually follows.  Values: spatial_scale, pad_ratio.
    """

    type = "ROIAlign"
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
        if len(bottoms[0]) != 4 or not count(bottoms[0][2:]):
            self.fail(f"takes images of at least one pixel; the input is {shape_text(bottoms[0])}")
        regions = legacy_shape(self, bottoms[1], "the regions")
        if count(regions[1:]) != 5:
            self.fail(f"a region has 5 values; the regions are {shape_text(bottoms[1])}")
        values = {"spatial_scale": options.spatial_scale, "pad_ratio": options.pad_ratio}
        return Plan(((regions[0], bottoms[0][1], size[0] + 1, size[1] + 1),), values=values)
