"""BoxAnnotatorOHEM: the regions with the largest losses, for the losses that follow."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class BoxAnnotatorOHEM(Layer):
    """box_annotator_ohem_layer.cpp of R-FCN; bottoms: regions, their losses, labels and weights.

    Of each image the roi_per_img regions with the largest losses keep label and weights; the
    others get ignore_label and zeros.  Of equal losses the first counts.
    Values: roi_per_img, ignore_label.
    """

    type = "BoxAnnotatorOHEM"
    field = "box_annotator_ohem_param"
    bottoms = exactly(4)
    tops = exactly(2)
    gradient = False
    labelled = True
    copied = ("roi_per_img", "ignore_label")
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.roi_per_img < 1:
            self.fail(f"roi_per_img must be positive; it is {options.roi_per_img}")
        names = ("regions", "losses", "labels", "weights")
        shapes = [
            legacy_shape(self, shape, name) for shape, name in zip(bottoms, names, strict=True)
        ]
        regions, _, labels, weights = shapes
        for name, shape, channels in zip(names, shapes, (5, 1, 1, weights[1]), strict=True):
            if shape != (regions[0], channels, *regions[2:]):
                self.fail(
                    f"the {name} must be {shape_text((regions[0], channels, *regions[2:]))}; "
                    f"they are {shape_text(shape)}"
                )
        return Plan((labels, weights))
