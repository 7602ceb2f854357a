"""InnerDistance: distances from rows (happynear/caffe-windows: inner_distance_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.classes import class_numbers
from sparknet.caffe.host.host import Host

Array = np.ndarray[Any, Any]


class InnerDistanceHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        if values["normalize"]:
            weights = self.params[0].data
            weights /= np.sqrt((weights**2).sum(1, keepdims=True) + 1e-6)
        vectors, rows = self._both(bottoms)
        out = np.zeros((len(vectors), len(rows)), np.float32)
        for place, row in enumerate(rows):
            away = vectors - row
            out[:, place] = (np.abs(away) if values["norm"] == "L1" else away**2).sum(1)
        tops[0].data[...] = out.reshape(tops[0].shape)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        values = self.node.plan.values
        vectors, rows = self._both(bottoms)
        given = tops[0].diff.reshape(len(vectors), len(rows))
        counted = np.ones_like(given)
        if values["labels"]:
            labels = class_numbers(self.node, bottoms[-1].data, len(rows))
            counted = (labels[:, None] == np.arange(len(rows))).astype(np.float32)
        to_vectors, to_rows = np.zeros_like(vectors), np.zeros_like(rows)
        for place, row in enumerate(rows):
            away = vectors - row
            slope = np.sign(away) if values["norm"] == "L1" else 2 * away
            slope = slope * given[:, place : place + 1]
            to_vectors += slope
            to_rows[place] = -(slope * counted[:, place : place + 1]).sum(0)
        if propagate_down[0]:
            bottoms[0].diff[...] = to_vectors.reshape(bottoms[0].shape)
        if values["own"]:
            self.params[0].diff[...] += to_rows
        elif propagate_down[1]:
            bottoms[1].diff[...] = to_rows.reshape(bottoms[1].shape)

    def _both(self, bottoms: Sequence[Blob]) -> tuple[Array, Array]:
        axis = self.node.plan.values["axis"]
        shape = bottoms[0].data.shape
        lead = int(np.prod(shape[:axis], dtype=np.int64))
        vectors = bottoms[0].data.reshape(lead, int(np.prod(shape[axis:], dtype=np.int64)))
        own = self.node.plan.values["own"]
        rows = self.params[0].data if own else bottoms[1].data
        return vectors, rows.reshape(len(rows), vectors.shape[1])
