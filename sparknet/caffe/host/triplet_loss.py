"""TripletLoss: margins of squared distances (forks: triplet_loss_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of


class TripletLossHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        a, p, n = (rows_of(bottom.data) for bottom in bottoms)
        far = self.node.plan.values["margin"] + ((a - p) ** 2).sum(1) - ((a - n) ** 2).sum(1)
        self.learns = (far > 0)[:, None]
        tops[0].data[...] = np.maximum(far, 0).sum(dtype=np.float64) / 2 / max(len(a), 1)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        a, p, n = (rows_of(bottom.data) for bottom in bottoms)
        scale = self.learns * np.float32(float(tops[0].diff) / max(len(a), 1))
        for bottom, slope, wanted in zip(
            bottoms, (n - p, p - a, a - n), propagate_down, strict=True
        ):
            if wanted:
                bottom.diff[...] = (slope * scale).reshape(bottom.shape)
