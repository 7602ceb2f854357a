"""ProposalTarget: the boxes that a stage of Cascade R-CNN trains on, and what they learn."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.cascade_boxes import scaling
from sparknet.layers.layer import Layer, Plan, Shape, between, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class ProposalTarget(Layer):
    """proposal_target_layer.cpp; bottoms: proposals (N x 5) and true boxes (M x 8: image, corners,
    class, ignored, difficult).

    Tops: the chosen boxes (R x 5), their classes, the targets of their deltas in the columns of
    their class (R x 4 classes, or R x 8 without cls_aware), the weights inside and outside a
    smooth L1 loss, the true boxes matched (R x 6: class, corners, overlap), and, if there is a
    seventh, weights of the samples.  R is known only in the forward pass.
    Values: those of proposal_target_param, classes, cls_aware, means, stds.
    """

    type = "ProposalTarget"
    field = "proposal_target_param"
    fields = ("bbox_reg_param",)
    bottoms = exactly(2)
    tops = between(6, 7)
    gradient = False
    reshapes = True
    copied = (
        "batch_size",
        "fg_fraction",
        "num_img_per_batch",
        "fg_thr",
        "bg_thr_hg",
        "bg_thr_lw",
        "img_width",
        "img_height",
        "iou_weighted",
        "bbox_thr_lw",
        "bbox_thr_hg",
        "pickup_discard",
        "append_gtbox",
    )

    @property
    def draws(self) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        shapes = [
            legacy_shape(self, s, n)
            for s, n in zip(bottoms, ("proposals", "true boxes"), strict=True)
        ]
        if shapes[0][1:] != (5, 1, 1) or shapes[1][1:] not in ((7, 1, 1), (8, 1, 1)):
            self.fail(
                "takes N x 5 proposals and M x 8 true boxes; they are "
                f"{shape_text(bottoms[0])} and {shape_text(bottoms[1])}"
            )
        if options.cls_num < 2:
            self.fail(f"cls_num must be at least 2, with the background; it is {options.cls_num}")
        if options.batch_size < 1 and options.batch_size != -1:
            self.fail(f"batch_size must be positive, or -1; it is {options.batch_size}")
        if not options.bg_thr_hg <= options.fg_thr or not 0 <= options.fg_fraction <= 1:
            self.fail("needs bg_thr_hg of at most fg_thr, and fg_fraction from 0 to 1")
        aware = self.parameter.bbox_reg_param.cls_aware
        columns = 4 * options.cls_num if aware else 8
        rows = options.batch_size if options.batch_size > 0 else max(shapes[0][0], 1)
        widths = (5, 1, columns, columns, columns, 6, 1)[: len(self.parameter.top)]
        values = {
            "classes": options.cls_num,
            "cls_aware": aware,
            **scaling(self),
        }
        return Plan(tuple((rows, width, 1, 1) for width in widths), values=values)
