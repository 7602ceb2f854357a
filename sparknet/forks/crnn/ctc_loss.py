"""CtcLoss: sequences of labels without their places in time."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import INTERPRETED, Plan, Shape, count, shape_text
from sparknet.layers.loss import Loss


class CtcLoss(Loss):
    """ctc_loss_layer.cpp of crnn.caffe (Graves et al., Connectionist Temporal Classification);
    bottoms: scores (time x N x alphabet_size) and labels (N x L), blank_label where there is none.

    The mean of the negative logarithms of the labels' chances, by a softmax over the scores; as
    there, the gradient is that of their sum.  A sequence too long for its time has none.
    Values: blank, time_step.
    """

    type = "CtcLoss"
    field = "ctc_loss_param"
    squashes = "softmax"
    time_first = True
    labelled = True
    copied = ("time_step",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        scores, labels = bottoms
        if len(scores) != 3 or len(labels) < 2 or labels[0] != scores[1]:
            self.fail(
                "takes time x N x alphabet_size scores and N x L labels; they are "
                f"{shape_text(scores)} and {shape_text(labels)}"
            )
        if options.alphabet_size != scores[2] or not 0 <= options.blank_label < scores[2]:
            self.fail(
                f"alphabet_size {options.alphabet_size} must be the last axis of the scores, "
                f"{shape_text(scores)}, and blank_label {options.blank_label} below it"
            )
        if not 0 < options.time_step <= scores[0]:
            self.fail(f"time_step {options.time_step} must be from 1 to {scores[0]}")
        values = {"blank": options.blank_label}
        return Plan(((),), values=values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        steps: int = plan.values["time_step"]
        return steps * count(bottoms[1][:1]) * max(count(bottoms[1][1:]), INTERPRETED)
