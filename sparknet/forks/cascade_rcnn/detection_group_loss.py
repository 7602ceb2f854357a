"""DetectionGroupLoss: what teaches the proposals of Cascade R-CNN's nets."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.anchor_groups import group_values
from sparknet.layers.layer import Plan, Shape, exactly
from sparknet.layers.loss import Loss

RANKINGS = ("conf_prob", "conf_loss")
MININGS = ("random", "bootstrap", "mixture")
BOX_LOSSES = ("Smooth_L1", "Euclidean_L2")


class DetectionGroupLoss(Loss):
    """detection_group_loss_layer.cpp; bottoms: scores (N A x classes x H x W), deltas
    (N A x 4 x H x W) and labels (N A x 6 x H x W), for A anchors of field_w x field_h.

    Of each image the places that hold an object and some of the background learn: batch_size of
    both, or, where it is -1, bg_multiple times as many background as objects.  neg_mining_type
    chooses background by chance, the worst first, or half and half.  The top is 1 x 1 x 1 x 2: the
    loss, and the part of it that boxes have; only the first has a gradient.  Deltas are bounded
    by field_xyr and field_whr where both are given.  Values: those of `group_values`, lambda,
    bounded, bg_multiple, batch_size, min_num_neg, mining, ranking, weighted, box_loss.
    """

    type = "DetectionGroupLoss"
    field = "detection_group_loss_param"
    fields = ("loss_param", "bbox_reg_param")
    bottoms = exactly(3)
    copied = ("bg_multiple", "batch_size", "min_num_neg")
    mixes_records = True
    unforced = (2,)

    @property
    def draws(self) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for name, known in (
            ("neg_mining_type", MININGS),
            ("neg_ranking_type", RANKINGS),
            ("bbox_loss_type", BOX_LOSSES),
        ):
            if getattr(options, name) not in known:
                found = getattr(options, name)
                self.fail(f"{name} '{found}' must be one of {', '.join(known)}")
        if options.batch_size < 1 and options.batch_size != -1:
            self.fail(f"batch_size must be positive, or -1; it is {options.batch_size}")
        values = {
            **group_values(self, bottoms),
            "lambda": getattr(options, "lambda"),
            "bounded": options.HasField("field_xyr") and options.HasField("field_whr"),
            "mining": options.neg_mining_type,
            "ranking": options.neg_ranking_type,
            "weighted": options.pos_neg_weighted,
            "box_loss": options.bbox_loss_type,
        }
        return Plan(((1, 1, 1, 2),), values=values)
