"""FocalLoss: cross entropy in which what is easy counts little."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, between
from sparknet.layers.loss import Loss, check_label_count, ignore_label, normalizing
from sparknet.layers.softmax import around


class FocalLoss(Loss):
    """focal_loss_layer.cpp of several forks (Lin et al., Focal Loss for Dense Object Detection).

    ORIGIN: -alpha (1 - p)^gamma log p of the label's softmax probability p; ONEADDP, of
    happynear's fork: -(alpha + p)^gamma log p.  A second top gives the probabilities.
    Values: axis, outer, channels, inner, normalization (default "valid"), ignore_label, kind
    ("origin" or "oneaddp"), gamma, alpha.
    """

    type = "FocalLoss"
    field = "focal_loss_param"
    fields = ("loss_param", "softmax_param")
    tops = between(1, 2)
    squashes = "softmax"
    labelled = True
    classes = 1
    copied = ("gamma", "alpha")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        data, labels = bottoms
        axis = self.axis(self.parameter.softmax_param.axis, data)
        check_label_count(self, data, labels, axis)
        options, kind = self.options, self.choice("type")
        if kind == "linear":
            self.fail("type LINEAR is not known: use ORIGIN or ONEADDP")
        if not options.gamma >= 0 or not options.alpha > 0:
            self.fail(
                "gamma must be at least 0 and alpha positive; "
                f"they are {options.gamma:g} and {options.alpha:g}"
            )
        values = {
            **around(data, axis),
            **normalizing(self.parameter.loss_param, default="valid"),
            "ignore_label": ignore_label(self.parameter.loss_param),
            "kind": kind,
        }
        return Plan(((), data)[: max(len(self.parameter.top), 1)], values=values)
