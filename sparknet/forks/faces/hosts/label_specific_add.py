"""LabelSpecificAdd: margins of labels (happynear/caffe-windows: label_specific_add.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.classes import class_numbers
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of
from sparknet.graph import Node


class LabelSpecificAddHost(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.passes = int(node.plan.values["iteration"])

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        out = tops[0].data
        out[...] = bottoms[0].data
        bias = self._bias()
        if len(tops) > 1:
            tops[1].data[...] = bias
        if not values["train"]:
            return
        rows = rows_of(out)
        labels = class_numbers(self.node, bottoms[1].data, rows.shape[1])
        places = np.arange(len(rows))
        own = rows[places, labels]
        rows[places, labels] = np.where(own > -bias, own + bias, own)
        out[...] = rows.reshape(out.shape)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        if propagate_down[0]:
            bottoms[0].diff[...] = tops[0].diff

    def _bias(self) -> float:
        values = self.node.plan.values
        if values["base"] is None or not values["train"]:
            return float(np.float32(values["bias"]))
        with np.errstate(all="ignore"):
            grown = (1 + values["gamma"] * self.passes) ** values["power"] - 1
        self.passes += 1
        return float(np.float32(min(max(values["base"] + grown, values["least"]), values["most"])))
