"""HardMining: of each image the boxes with the largest losses."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, count, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class HardMining(Layer):
    """hard_mining_layer.cpp of Cascade R-CNN; bottoms: a loss for each box, the boxes (N x 5), and
    anything that has a row for each box.

    Each bottom but the first has a top with the rows that are kept, in their order: of each of
    num_image images num_roi_per_image with the largest losses, filled up with the largest that
    are left.  Values: images, each.
    """

    type = "HardMining"
    field = "hard_mining_param"
    bottoms = at_least(2)
    tops = at_least(1)
    gradient = False
    labelled = True
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.num_image < 1 or options.num_roi_per_image < 1:
            self.fail("num_image and num_roi_per_image must be positive")
        if len(bottoms) != len(self.parameter.top) + 1:
            self.fail(
                "needs a top for each bottom but the first; it has "
                f"{len(bottoms)} bottoms and {len(self.parameter.top)} tops"
            )
        shapes = [legacy_shape(self, shape, "a bottom") for shape in bottoms]
        rows = count(bottoms[0])
        for number, shape in enumerate(shapes):
            if shape[0] != rows or (number == 1 and shape[1:] != (5, 1, 1)):
                self.fail(
                    f"a loss for each of {rows} boxes needs {rows} rows in all bottoms, of 5 "
                    f"values in bottom 1; bottom {number} is {shape_text(bottoms[number])}"
                )
        kept = min(rows, options.num_image * options.num_roi_per_image)
        values = {"images": options.num_image, "each": options.num_roi_per_image}
        return Plan(tuple((kept, *shape[1:]) for shape in shapes[1:]), values=values)
