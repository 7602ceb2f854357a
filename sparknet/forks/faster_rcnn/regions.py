"""What layers share that pool regions of an image, which is bottom 0."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Shape, count, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class Regions(Layer):
    """Bottom 1 has a region in each row: (image, x1, y1, x2, y2)."""

    labelled = True
    bottoms = exactly(2)
    mixes_records = True

    def regions(self, bottoms: Sequence[Shape]) -> int:
        """The number of regions."""
        regions = legacy_shape(self, bottoms[1], "the regions")
        if count(regions[1:]) != 5:
            self.fail(f"a region has 5 values; the regions are {shape_text(bottoms[1])}")
        return regions[0]

    def pooled_size(self) -> tuple[int, int]:
        """pooled_h and pooled_w of roi_pooling_param."""
        size = (self.options.pooled_h, self.options.pooled_w)
        if min(size) < 1:
            self.fail(f"pooled_h and pooled_w must be positive; they are {shape_text(size)}")
        return size
