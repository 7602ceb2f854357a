"""FocalLoss: a softmax loss that weighs easy records less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.layers.activations import around
from sparknet.layers.host import Blobs, Host, class_numbers
from sparknet.layers.layer import Plan, Shape, between, layer
from sparknet.layers.losses import Loss, check_label_count, ignore_label, normalizing

Array = np.ndarray[Any, Any]
TINY = float(np.finfo(np.float32).tiny)
NEAR = 1e-10
"""Less than this is no distance from 1."""


class FocalLossHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        outer, channels, inner = (values[name] for name in ("outer", "channels", "inner"))
        ignored = values["ignore_label"]
        labels = class_numbers(self.node, bottoms[1].data, channels, ignored)
        self.labels = labels.reshape(outer, 1, inner)
        self.counted = self.labels != ignored
        scores = bottoms[0].data.reshape(outer, channels, inner).astype(np.float64)
        powers = np.exp(scores - scores.max(1, keepdims=True))
        self.chances = powers / powers.sum(1, keepdims=True)
        if len(tops) > 1:
            tops[1].data[...] = self.chances.reshape(tops[1].shape)
        safe = np.where(self.counted, self.labels, 0)
        self.likely = np.take_along_axis(self.chances, safe, 1)
        log, power, _ = parts(self.likely, values)
        loss = -(power * log)[self.counted].sum()
        tops[0].data[...] = loss / self._normalizer()

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        if not propagate_down[0]:
            return
        values = self.node.plan.values
        log, power, slope = parts(self.likely, values)
        # d loss / d p · p; softmax's slope does the rest.
        steep = (power + slope * log * self.likely) * self.counted
        hit = np.arange(values["channels"])[None, :, None] == self.labels
        weight = float(tops[0].diff) / self._normalizer()
        bottoms[0].diff[...] = (steep * (self.chances - hit) * weight).reshape(bottoms[0].shape)

    def _normalizer(self) -> float:
        values = self.node.plan.values
        counts = {
            "full": values["outer"] * values["inner"],
            "valid": int(self.counted.sum()),
            "batch_size": values["outer"],
            "none": 1,
            "pre_fixed": values.get("pre_fixed_normalizer", 1),
        }
        return max(float(counts[values["normalization"]]), 1.0)


def parts(likely: Array, values: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return the logarithm, the factor before it, and the factor's slope."""
    gamma, alpha = values["gamma"], values["alpha"]
    log = np.log(np.maximum(likely, TINY))
    if values["kind"] == "oneaddp":
        power = (alpha + likely) ** gamma
        return log, power, gamma * power / (alpha + likely)
    power = alpha * (1 - likely) ** gamma
    return log, power, -gamma * power / np.maximum(1 - likely, NEAR)


@layer("FocalLoss")
class FocalLoss(Loss):
    """focal_loss_layer.cpp of several forks (Lin et al., Focal Loss for Dense Object Detection).

    ORIGIN: -alpha (1 - p)^gamma log p of the label's softmax probability p; ONEADDP, of
    happynear's fork: -(alpha + p)^gamma log p.  A second top gives the probabilities."""

    host = FocalLossHost
    field = "focal_loss_param"
    fields = ("loss_param", "softmax_param")
    tops = between(1, 2)
    score_function = "softmax"
    other_bottoms = "classes"
    plain_options = ("gamma", "alpha")

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
