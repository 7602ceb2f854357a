"""PSROIPooling: position-sensitive pooling of regions."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.faster_rcnn.regions import Regions
from sparknet.layers.layer import Plan, Shape, shape_text


class PSROIPooling(Regions):
    """psroi_pooling_layer.cpp of R-FCN.  A region is (image, x1, y1, x2, y2).

    A region falls into group_size x group_size bins; each takes the average of its own
    output_dim of the channels.  Values: group_size, output_dim, spatial_scale.
    """

    type = "PSROIPooling"
    field = "psroi_pooling_param"
    copied = ("spatial_scale",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        group, outputs = options.group_size, options.output_dim
        if min(group, outputs) < 1 or not options.spatial_scale > 0:
            self.fail(
                "group_size, output_dim and spatial_scale must be positive; "
                f"they are {group}, {outputs} and {options.spatial_scale:g}"
            )
        image = bottoms[0]
        if len(image) != 4 or image[1] != outputs * group * group:
            self.fail(
                f"takes images of {outputs} x {group} x {group} channels; "
                f"the input is {shape_text(image)}"
            )
        regions = self.regions(bottoms)
        values = {"group_size": group, "output_dim": outputs}
        return Plan(((regions, outputs, group, group),), values=values)
