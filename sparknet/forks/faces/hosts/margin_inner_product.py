"""MarginInnerProduct: products with an angle between classes (SphereFace:
margin_inner_product_layer.cpp)."""

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
TINY = 1e-12


class MarginInnerProductHost(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.passes = int(node.plan.values["iteration"])
        self.share = 0.0

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        self.passes += 1
        with np.errstate(all="ignore"):
            growth = np.float64(1 + values["gamma"] * self.passes)
            share = values["base"] * growth ** -values["power"]
        self.share = float(max(np.nan_to_num(share), values["lambda_min"]))
        weights = self.params[0].data
        weights /= np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), TINY)
        labels = class_numbers(self.node, bottoms[1].data, len(weights))
        vectors = rows_of(bottoms[0].data)
        products = vectors @ weights.T
        rows = np.arange(len(labels))
        if values["times"] > 1:
            length = np.linalg.norm(vectors, axis=1)
            cos = products[rows, labels] / np.maximum(length, TINY)
            psi, _ = folded(cos, values["times"])
            mixed = (self.share * products[rows, labels] + length * psi) / (1 + self.share)
            products[rows, labels] = mixed
        tops[0].data[...] = products
        if len(tops) > 1:
            tops[1].data[...] = self.share

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        given, weights = tops[0].diff, self.params[0].data
        labels = bottoms[1].data.ravel().astype(np.int64)
        vectors = rows_of(bottoms[0].data)
        self.params[0].diff[...] += given.T @ vectors
        if not propagate_down[0]:
            return
        slope, times = given @ weights, self.node.plan.values["times"]
        if times > 1:
            rows = weights[labels]
            own = given[np.arange(len(labels)), labels][:, None] / (1 + self.share)
            length = np.maximum(np.linalg.norm(vectors, axis=1), TINY)
            cos = (vectors * rows).sum(1) / length
            psi, steep = folded(cos, times)
            by_row, by_vector = steep, (psi - cos * steep) / length
            size = np.maximum(np.hypot(by_row, by_vector), TINY)
            bent = (by_row / size)[:, None] * rows + (by_vector / size)[:, None] * vectors
            slope += own * (bent - rows)
        bottoms[0].diff[...] = slope.reshape(bottoms[0].shape)


def folded(cos: Array, times: int) -> tuple[Array, Array]:
    """(-1)^k cos(times t) - 2 k, where k counts the turns of t, and its slope by cos(t)."""
    sign = np.sign(cos)
    if times == 2:
        return 2 * sign * cos**2 - 1, 4 * sign * cos
    if times == 3:
        fold = np.sign(np.abs(cos) - 0.5)
        shift = sign * (1 + fold) - 2
        return fold * (4 * cos**3 - 3 * cos) + shift, fold * (12 * cos**2 - 3)
    fold = sign * np.sign(2 * cos**2 - 1)
    shift = 2 * sign + fold - 3
    return fold * (8 * cos**4 - 8 * cos**2 + 1) + shift, fold * (32 * cos**3 - 16 * cos)
