"""MultiStageMeanfield: mean field iterations, and back (crfasrnn: multi_stage_meanfield.cpp,
meanfield_iteration.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.errors import LayerError
from sparknet.forks.segmentation.hosts.dense_crf import softmax
from sparknet.forks.segmentation.hosts.permutohedral import Lattice, coloured, grid
from sparknet.graph import Node

Array = np.ndarray[Any, Any]


class MultiStageMeanfieldHost(Host):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.passes: list[tuple[list[Blurring], list[Array]]] = []
        self.places: tuple[tuple[int, int], Blurring] | None = None

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values, self.passes = self.node.plan.values, []
        spatial, bilateral, compare = (matrix(blob.data) for blob in self.params)
        for scores, start, image, out in zip(*(b.data for b in bottoms), tops[0].data, strict=True):
            first = scores.reshape(len(scores), -1).astype(np.float64)
            now = start.reshape(first.shape).astype(np.float64)
            filters = self._filters(image)
            kept = []
            for _ in range(values["iterations"]):
                chances = softmax(now)
                near, alike = (one.filter(chances) for one in filters)
                now = first - compare @ (spatial @ near + bilateral @ alike)
                if self.node.needs_backward:
                    kept.append(chances)
            self.passes.append((filters, kept))
            out[...] = now.reshape(out.shape)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        spatial, bilateral, compare = (matrix(blob.data) for blob in self.params)
        slopes = [np.zeros(matrix(blob.data).shape) for blob in self.params]
        for number, (filters, kept) in enumerate(self.passes):
            given = tops[0].diff[number]
            slope = given.reshape(len(given), -1).astype(np.float64)
            to_first = np.zeros_like(slope)
            for chances in reversed(kept):
                to_first += slope
                near, alike = (one.filter(chances) for one in filters)
                slopes[2] -= slope @ (spatial @ near + bilateral @ alike).T
                message = -compare.T @ slope
                slopes[0] += message @ near.T
                slopes[1] += message @ alike.T
                back = filters[0].back(spatial.T @ message) + filters[1].back(bilateral.T @ message)
                slope = chances * (back - (chances * back).sum(0))
            for bottom, wanted, found in zip(
                bottoms, propagate_down, (to_first, slope), strict=False
            ):
                if wanted:
                    bottom.diff[number] = found.reshape(given.shape)
        for blob, found in zip(self.params, slopes, strict=True):
            blob.diff[...] += found.reshape(blob.shape)

    def _filters(self, image: Array) -> list[Blurring]:
        values = self.node.plan.values
        size = (image.shape[1], image.shape[2])
        try:
            if self.places is None or self.places[0] != size:
                self.places = size, Blurring(grid(*size, values["gamma"]))
            colours = Blurring(coloured(image, values["alpha"], values["beta"]))
        except ValueError as error:
            raise LayerError(self.node.name, f"MultiStageMeanfield: {error}") from error
        return [self.places[1], colours]


class Blurring:
    """A filter whose weights of each point add up to 1."""

    def __init__(self, features: Array) -> None:
        self.lattice = Lattice(features)
        self.norm = self.lattice.filter(np.ones((1, len(features))))

    def filter(self, values: Array) -> Array:
        return np.asarray(self.lattice.filter(values) / self.norm)

    def back(self, slope: Array) -> Array:
        return self.lattice.filter(slope / self.norm, transposed=True)


def matrix(blob: Array) -> Array:
    return np.asarray(blob.reshape(blob.shape[-2:]), np.float64)
