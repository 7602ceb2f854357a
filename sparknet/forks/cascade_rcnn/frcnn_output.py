"""FrcnnOutput: the detections of Cascade R-CNN."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.cascade_boxes import check_overlap, scaling
from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.layers.saved_output import refuse_saving


class FrcnnOutput(Layer):
    """frcnn_output_layer.cpp; bottoms: scores (N x classes), deltas, boxes (N x 5 or 6) of one
    image, and the image's height and width.

    The top begins with a row (0, -1 …) and has rows (0, x1, y1, x2, y2, class, score), class by
    class.  Boxes end at the image's height and width at most; nms_type is BoxOutput's.  The number
    of boxes is known only in the forward pass.  A save_output_param that would write files is
    refused.  Values: conf_thr, iou_thr, nms_type, max_det_num (0: all), cls_aware, means, stds.
    """

    type = "FrcnnOutput"
    field = "frcnn_output_param"
    fields = ("bbox_reg_param",)
    bottoms = exactly(4)
    gradient = False
    reshapes = True
    numbered = True
    copied = ("conf_thr", "iou_thr", "max_det_num")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        refuse_saving(self)
        options, aware = self.options, self.parameter.bbox_reg_param.cls_aware
        names = ("scores", "deltas", "boxes")
        shapes = [legacy_shape(self, s, n) for s, n in zip(bottoms[:3], names, strict=True)]
        wanted = 4 * shapes[0][1] if aware else 8
        same = len({(shape[0], *shape[2:]) for shape in shapes} | {(shapes[0][0], 1, 1)}) == 1
        if not same or shapes[1][1] != wanted or shapes[2][1] not in (5, 6):
            self.fail(
                f"scores {shape_text(bottoms[0])} need deltas of {wanted} values and boxes of 5; "
                f"they are {shape_text(bottoms[1])} and {shape_text(bottoms[2])}"
            )
        if count(bottoms[3]) < 2:
            self.fail(f"needs the image's height and width, not {shape_text(bottoms[3])}")
        values = {
            "nms_type": check_overlap(self, options.nms_type),
            "cls_aware": aware,
            **scaling(self),
        }
        return Plan(((1, 7, 1, 1),), values=values)
