"""The Python layer ``rpn.anchor_target_layer.AnchorTargetLayer``: what each anchor should say."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.forks.faster_rcnn.rpn.boxes import RATIOS, SCALES, anchors, encoded, grid, overlaps
from sparknet.forks.faster_rcnn.rpn.settings import settings
from sparknet.layers.user_layer import UserLayer

DEFAULTS = {
    "feat_stride": 16,
    "scales": SCALES,
    "ratios": RATIOS,
    "allowed_border": 0,
    "batch_size": 256,
    "fg_fraction": 0.5,
    "positive_overlap": 0.7,
    "negative_overlap": 0.3,
    "seed": 0,
}


class AnchorTargetLayer(UserLayer):
    """Bottoms: scores of the anchors, true boxes (x1, y1, x2, y2, class), image size, image.

    Tops: a label of each anchor (1 object, 0 none, -1 neither), targets of its deltas, and the
    weights inside and outside a smooth L1 loss.
    """

    def setup(self, bottom: Any, top: Any) -> None:
        self.values = settings(self.param_str, DEFAULTS)
        self.base = anchors(16, self.values["ratios"], self.values["scales"])
        self.random = np.random.default_rng(int(self.values["seed"]))
        self.reshape(bottom, top)

    def reshape(self, bottom: Any, top: Any) -> None:
        high, wide = bottom[0].shape[-2:]
        many = len(self.base)
        top[0].reshape(1, 1, many * high, wide)
        for one in list(top)[1:]:
            one.reshape(1, 4 * many, high, wide)

    def forward(self, bottom: Any, top: Any) -> None:
        high, wide = bottom[0].shape[-2:]
        truth = np.array(bottom[1].data).reshape(-1, 5)[:, :4]
        size = bottom[2].data.ravel()
        places = grid(high, wide, int(self.values["feat_stride"]), self.base)
        border = self.values["allowed_border"]
        inside = np.flatnonzero(
            (places[:, :2] >= -border).all(1)
            & (places[:, 2] < size[1] + border)
            & (places[:, 3] < size[0] + border)
        )
        labels = np.full(len(places), -1.0)
        targets, inner, outer = (np.zeros((len(places), 4)) for _ in range(3))
        if len(inside) and len(truth):
            labels[inside], best = self._labels(places[inside], truth)
            targets[inside] = encoded(places[inside], truth[best])
            inner[labels == 1] = 1
            outer[labels >= 0] = 1 / max(int(np.count_nonzero(labels >= 0)), 1)
        by_place = (high, wide, len(self.base), -1)
        top[0].data[...] = labels.reshape(high, wide, -1).transpose(2, 0, 1).reshape(top[0].shape)
        for one, values in zip(list(top)[1:], (targets, inner, outer), strict=False):
            one.data[...] = values.reshape(by_place).transpose(2, 3, 0, 1).reshape(one.shape)

    def _labels(self, places: Any, truth: Any) -> tuple[Any, Any]:
        """The labels, of which few enough are not -1, and the true box nearest to each anchor."""
        values = self.values
        shared = overlaps(places, truth)
        best, most = shared.argmax(1), shared.max(1)
        labels = np.full(len(places), -1.0)
        labels[most < values["negative_overlap"]] = 0
        labels[(shared == shared.max(0)).any(1)] = 1
        labels[most >= values["positive_overlap"]] = 1
        positive = int(values["fg_fraction"] * values["batch_size"])
        self._drop(labels, 1, positive)
        self._drop(labels, 0, int(values["batch_size"]) - np.count_nonzero(labels == 1))
        return labels, best

    def _drop(self, labels: Any, label: int, most: int) -> None:
        found = np.flatnonzero(labels == label)
        if len(found) > most:
            labels[self.random.choice(found, len(found) - most, replace=False)] = -1

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Targets have no gradient."""
