"""FocalLoss: the loss and its gradient (forks: focal_loss_layer.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.classes import class_numbers
from sparknet.caffe.host.host import Host

Array = np.ndarray[Any, Any]
TINY = float(np.finfo(np.float32).tiny)
NEAR = 1e-10
"""Less than this is no distance from 1."""


class FocalLossHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
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

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
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
    """The logarithm, the factor before it, and the factor's slope."""
    gamma, alpha = values["gamma"], values["alpha"]
    log = np.log(np.maximum(likely, TINY))
    if values["kind"] == "oneaddp":
        power = (alpha + likely) ** gamma
        return log, power, gamma * power / (alpha + likely)
    power = alpha * (1 - likely) ** gamma
    return log, power, -gamma * power / np.maximum(1 - likely, NEAR)
