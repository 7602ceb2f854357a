"""DetectionLoss: what teaches the proposals of MS-CNN."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.field_maps import field_values
from sparknet.layers.layer import Plan, Shape, exactly
from sparknet.layers.loss import Loss

SAMPLES = ("random", "bootstrap", "mixture", "all")


class DetectionLoss(Loss):
    """detection_loss_layer.cpp of MS-CNN; bottoms: predictions (N x (classes + 4) x H x W) and
    labels (N x 6 x H x W: class, centre, size and overlap), for one field at every place.

    All places that hold an object learn, and those of the background that sample_mode chooses, with
    overlaps below bg_threshold: "random" draws bg_multiple times as many places as hold an object,
    "bootstrap" takes the largest scores of each class, "mixture" half of both; any other word all.
    The top is 1 x 1 x 1 x 2: the loss, and the part of it that boxes have; only the first has a
    gradient.  The layer of the same name of gklz1982/caffe-yolov2 is another and is refused.
    Values: those of `field_values`, lambda, bg_multiple, sample ("random", "bootstrap", "mixture"
    or "all"), iou_weighted, weighted, box_loss.
    """

    type = "DetectionLoss"
    field = "detection_loss_param"
    fields = ("loss_param", "bbox_reg_param")
    bottoms = exactly(2)
    copied = ("bg_multiple", "iou_weighted")
    mixes_records = True
    unforced = (1,)

    @property
    def draws(self) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if not options.HasField("cls_num"):
            self.fail(
                "needs cls_num, as MS-CNN has it; the DetectionLoss of gklz1982/caffe-yolov2, "
                "with side and num_object, is not there"
            )
        values = {
            **field_values(self, bottoms),
            "lambda": getattr(options, "lambda"),
            "sample": options.sample_mode if options.sample_mode in SAMPLES else "all",
            "weighted": options.pos_neg_weighted,
            "box_loss": "Smooth_L1" if options.bb_smooth else "Euclidean_L2",
        }
        return Plan(((1, 1, 1, 2),), values=values)
