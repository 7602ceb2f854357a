"""CenterLoss: distances from centres (caffe-face: center_loss_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.classes import class_numbers
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of
from sparknet.graph import Node

Array = np.ndarray[Any, Any]


class CenterLossHost(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.away, self.labels = np.zeros((0, 0), np.float32), np.zeros(0, np.int64)

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        self.labels = class_numbers(self.node, bottoms[1].data, values["classes"])
        features = rows_of(bottoms[0].data)
        self.away = features - self.params[0].data[self.labels]
        far = np.abs(self.away) if values["norm"] == "L1" else self.away**2 / 2
        tops[0].data[...] = far.sum(dtype=np.float64) / max(len(features), 1)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        slope = np.sign(self.away) if self.node.plan.values["norm"] == "L1" else self.away
        counts = np.bincount(self.labels, minlength=len(self.params[0].data))
        shares = slope / (counts[self.labels] + 1).astype(np.float32)[:, None]
        np.subtract.at(self.params[0].diff, self.labels, shares)
        if propagate_down[0]:
            weight = np.float32(float(tops[0].diff) / max(len(slope), 1))
            bottoms[0].diff[...] = (slope * weight).reshape(bottoms[0].shape)
