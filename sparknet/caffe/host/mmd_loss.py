"""MMDLoss: the discrepancy of two domains (thuml/transfer-caffe: mmd_layer.cu)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import DrawingHost
from sparknet.caffe.host.rows import rows_of
from sparknet.graph import Node

Array = np.ndarray[Any, Any]


class MMDLossHost(DrawingHost):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.gamma: float | None = None
        self.slopes: list[Array] = []

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        domains = [rows_of(bottom.data).astype(np.float64) for bottom in bottoms]
        self.slopes = [np.zeros_like(domain) for domain in domains]
        loss = 0.0
        if min(map(len, domains)) > 1:
            widths = self._widths(np.concatenate(domains))
            many = max(map(len, domains))
            (s1, s2), (t1, t2) = (self._pairs(len(domain), many) for domain in domains)
            for one, other, sign in (
                ((0, s1), (0, s2), 1.0),
                ((1, t1), (1, t2), 1.0),
                ((0, s1), (1, t2), -1.0),
                ((1, t1), (0, s2), -1.0),
            ):
                away = domains[one[0]][one[1]] - domains[other[0]][other[1]]
                kernels = np.exp(-widths * (away**2).sum(1, keepdims=True))
                loss += sign * float(kernels.sum())
                slope = -2 * sign / many * (kernels * widths).sum(1, keepdims=True) * away
                np.add.at(self.slopes[one[0]], one[1], slope)
                np.subtract.at(self.slopes[other[0]], other[1], slope)
        tops[0].data[...] = loss

    def _widths(self, rows: Array) -> Array:
        """What squared distances are multiplied by in each kernel."""
        values = self.node.plan.values
        if self.gamma is None or not values["fixed"]:
            squares = (rows**2).sum(1)
            all_pairs = 2 * (len(rows) * squares.sum() - (rows.sum(0) ** 2).sum())
            self.gamma = float(len(rows) * (len(rows) - 1) / all_pairs) if all_pairs > 0 else 0.0
        powers = np.arange(values["kernels"]) - values["kernels"] // 2
        return np.asarray(self.gamma * values["factor"] ** powers.astype(np.float64))

    def _pairs(self, records: int, many: int) -> tuple[Array, Array]:
        """Pairs of different records."""
        first, second = self.rng.integers(0, records, (2, many))
        return first, np.where(first == second, (second + 1) % records, second)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        for bottom, slope, wanted in zip(bottoms, self.slopes, propagate_down, strict=True):
            if wanted:
                bottom.diff[...] = (slope * float(tops[0].diff)).reshape(bottom.shape)
