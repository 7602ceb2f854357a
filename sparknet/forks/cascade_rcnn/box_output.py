"""BoxOutput: MS-CNN's region proposals."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.cascade_boxes import check_overlap, scaling
from sparknet.layers.layer import Layer, Plan, Shape, at_least, between, shape_text


class BoxOutput(Layer):
    """box_output_layer.cpp of MS-CNN; each bottom (N x (classes + 4) x H x W) has the scores and
    deltas of one field at every place.

    Top 0 has rows (image, x1, y1, x2, y2), top 1 the score too: the largest of a class less that of
    the background, class 0.  nms_type is what an overlap is a part of: the union (IOU), the smaller
    box (IOMU) or the first one (IOFU).  The number of boxes is known only in the forward pass;
    without one there is a row (0, 1, 1, 10, 10) in top 0 and of zeros in top 1.
    Values: fg_thr, iou_thr, nms_type, max_nms_num, max_post_nms_num, min_size, field_whr,
    field_xyr, strides, sizes (width and height of each field), means, stds.
    """

    type = "BoxOutput"
    field = "box_output_param"
    fields = ("bbox_reg_param",)
    bottoms = at_least(1)
    tops = between(1, 2)
    gradient = False
    reshapes = True
    numbered = True
    copied = (
        "fg_thr",
        "iou_thr",
        "max_nms_num",
        "max_post_nms_num",
        "min_size",
        "field_whr",
        "field_xyr",
    )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for name in ("field_h", "field_w", "downsample_rate"):
            found = getattr(options, name)
            if len(found) != len(bottoms) or min(found) < 1:
                self.fail(f"needs a positive {name} for each of {len(bottoms)} bottoms")
        if not (options.field_whr > 0 and options.field_xyr > 0):
            self.fail("field_whr and field_xyr must be positive")
        for shape in bottoms:
            if len(shape) != 4 or shape[1] < 6 or shape[:2] != bottoms[0][:2]:
                self.fail(
                    "needs bottoms of N x (2 classes or more, and 4) x H x W, with one N and one "
                    f"number of classes; one is {shape_text(shape)}"
                )
        values = {
            "nms_type": check_overlap(self, options.nms_type),
            "strides": tuple(options.downsample_rate),
            "sizes": tuple(zip(options.field_w, options.field_h, strict=True)),
            **scaling(self),
        }
        return Plan(((1, 5, 1, 1), (1, 6, 1, 1))[: len(self.parameter.top)], values=values)
