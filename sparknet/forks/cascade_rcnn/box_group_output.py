"""BoxGroupOutput: Cascade R-CNN's region proposals."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.cascade_boxes import check_overlap, scaling
from sparknet.layers.layer import Layer, Plan, Shape, at_least, between, count, shape_text


class BoxGroupOutput(Layer):
    """box_group_output_layer.cpp; bottoms: for each group of anchors, scores and deltas.

    Items of the scores are image by image, and in each image anchor by anchor; class 0 is the
    background.  Boxes end at the image's size at most, one pixel after its last.  Top 0 has rows
    (image, x1, y1, x2, y2), top 1 the score too.  nms_type and the rows without a box are
    BoxOutput's.  The number of boxes is known only in the forward pass.
    Values: fg_thr, iou_thr, nms_type, max_nms_num, max_post_nms_num, min_size, field_whr,
    field_xyr, strides, sizes (of each group its anchors' heights, widths), means, stds.
    """

    type = "BoxGroupOutput"
    field = "box_group_output_param"
    fields = ("bbox_reg_param",)
    bottoms = at_least(2)
    tops = between(1, 2)
    gradient = False
    reshapes = True
    numbered = True
    copied = (
        "field_whr",
        "field_xyr",
        "fg_thr",
        "iou_thr",
        "max_nms_num",
        "max_post_nms_num",
        "min_size",
    )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        groups = list(options.box_group_param)
        if len(bottoms) != 2 * len(groups):
            self.fail(
                f"{len(groups)} box_group_param need twice as many bottoms, not {len(bottoms)}"
            )
        if not (options.field_whr > 0 and options.field_xyr > 0):
            self.fail("field_whr and field_xyr must be positive")
        for number, group in enumerate(groups):
            scores, deltas = bottoms[2 * number : 2 * number + 2]
            many = len(group.field_h)
            if not many or many != len(group.field_w) or group.stride < 1:
                self.fail(f"box_group_param {number} needs a stride, and field_h for each field_w")
            fits = len(scores) == len(deltas) == 4 and scores[0] == deltas[0]
            fits = fits and count(scores[1:]) > 0
            if not fits or scores[0] % many or deltas != (scores[0], 4, *scores[2:]):
                self.fail(
                    f"group {number} of {many} anchors cannot have scores {shape_text(scores)} "
                    f"and deltas {shape_text(deltas)}"
                )
            images = bottoms[0][0] // len(groups[0].field_h)
            if scores[0] // many != images:
                self.fail(
                    f"group {number} has {scores[0] // many} images, and group 0 has {images}"
                )
        values = {
            "nms_type": check_overlap(self, options.nms_type),
            "strides": tuple(group.stride for group in groups),
            "sizes": tuple((tuple(g.field_h), tuple(g.field_w)) for g in groups),
            **scaling(self),
        }
        return Plan(((1, 5, 1, 1), (1, 6, 1, 1))[: len(self.parameter.top)], values=values)
