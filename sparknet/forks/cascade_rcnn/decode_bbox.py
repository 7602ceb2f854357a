"""DecodeBBox: the boxes of one stage of Cascade R-CNN, for the next."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.cascade_boxes import scaling
from sparknet.layers.layer import TRAIN, Layer, Plan, Shape, between, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class DecodeBBox(Layer):
    """decode_bbox_layer.cpp; bottoms: deltas (N x 8, of which the last four count), boxes (N x 5),
    and in TRAIN the true boxes matched (N x 6, the last value the overlap).

    In TRAIN boxes without a size, and those that overlap by gt_iou_thr or more, are left out: the
    number of boxes is known only in the forward pass.  Values: gt_iou_thr, train, means, stds.
    """

    type = "DecodeBBox"
    field = "decode_bbox_param"
    fields = ("bbox_reg_param",)
    bottoms = between(2, 3)
    gradient = False
    reshapes = True
    copied = ("gt_iou_thr",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        names = ("deltas", "boxes", "true boxes")
        shapes = [legacy_shape(self, s, n) for s, n in zip(bottoms, names, strict=False)]
        widths = [shape[1:] for shape in shapes[:2]]
        if widths != [(8, 1, 1), (5, 1, 1)] or len({shape[0] for shape in shapes}) > 1:
            self.fail(
                "takes N x 8 deltas and N x 5 boxes; they are "
                f"{shape_text(bottoms[0])} and {shape_text(bottoms[1])}"
            )
        if len(bottoms) > 2 and self.phase != TRAIN:
            self.fail("takes true boxes in TRAIN only")
        if len(bottoms) > 2 and shapes[2][1:] != (6, 1, 1):
            self.fail(f"takes N x 6 true boxes; they are {shape_text(bottoms[2])}")
        values = {"train": self.phase == TRAIN, **scaling(self)}
        return Plan((bottoms[1],), values=values)
