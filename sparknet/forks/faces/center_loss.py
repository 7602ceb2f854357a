"""CenterLoss: how far features are from the centres of their classes, which learn."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, count
from sparknet.layers.learnable import learnable
from sparknet.layers.loss import Loss, check_one_label_each


class CenterLoss(Loss):
    """center_loss_layer.cpp of caffe-face (Wen et al., A Discriminative Feature Learning Approach
    for Deep Face Recognition); num_output is the number of classes.

    The loss is half the mean squared distance, or with distance_type L1 the mean of absolute
    differences.  As there, what a centre learns is the mean distance of its features, one more
    counted than there are, whatever the loss weight.  Values: classes, norm ("L1" or "L2").
    """

    type = "CenterLoss"
    field = "center_loss_param"
    labelled = True
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        check_one_label_each(self, bottoms[1])
        options = self.options
        if options.num_output < 1:
            self.fail(f"num_output must be positive; it is {options.num_output}")
        if options.distance_type not in ("L1", "L2"):
            self.fail(f"distance_type '{options.distance_type}' must be L1 or L2")
        if self.axis(options.axis, bottoms[0]) != 1:
            self.fail(f"axis must be 1; it is {options.axis}")
        centres = learnable(
            self, (options.num_output, count(bottoms[0][1:])), options.center_filler
        )
        values = {"classes": options.num_output, "norm": options.distance_type}
        return Plan(((),), (centres,), values)
