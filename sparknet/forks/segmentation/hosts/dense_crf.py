"""DenseCRF: mean field inference (DeepLab: densecrf_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of
from sparknet.errors import LayerError
from sparknet.forks.segmentation.hosts.permutohedral import Lattice, coloured, grid

Array = np.ndarray[Any, Any]
TINY = float(np.finfo(np.float32).tiny)


class DenseCRFHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values, out = self.node.plan.values, tops[0].data
        sizes = rows_of(bottoms[1].data)[:, :2].astype(np.int64)
        out[...] = 0
        for number, (scores, size) in enumerate(zip(bottoms[0].data, sizes, strict=True)):
            high, wide = scores.shape[1:]
            if not (high <= size[0] and wide <= size[1]):
                high, wide = min(int(size[0]), high), min(int(size[1]), wide)
            if min(high, wide) < 1:
                raise LayerError(self.node.name, f"DenseCRF: picture {number} has no pixel")
            image = bottoms[2].data[number, :, :high, :wide] if len(bottoms) > 2 else None
            found = self._inferred(scores[:, :high, :wide], image)
            if not values["probability"]:
                found = np.log(np.maximum(found, TINY))
            out[number, :, :high, :wide] = found.reshape(len(scores), high, wide)

    def _inferred(self, scores: Array, image: Array | None) -> Array:
        values = self.node.plan.values
        high, wide = scores.shape[1:]
        try:
            potentials = [(w, Lattice(grid(high, wide, std))) for w, std in values["places"]]
            if image is not None:
                for weight, place, colour in values["colours"]:
                    potentials.append((weight, Lattice(coloured(image, place, colour))))
        except ValueError as error:
            raise LayerError(self.node.name, f"DenseCRF: {error}") from error
        norms = [lattice.filter(np.ones((1, high * wide))) for _, lattice in potentials]
        first = scores.reshape(len(scores), -1).astype(np.float64)
        chances = softmax(first)
        for _ in range(values["iterations"]):
            total = first.copy()
            for (weight, lattice), norm in zip(potentials, norms, strict=True):
                total += weight * lattice.filter(chances) / norm
            chances = softmax(total)
        return chances


def softmax(scores: Array) -> Array:
    """Over the first axis."""
    powers = np.exp(scores - scores.max(0))
    return np.asarray(powers / powers.sum(0))
