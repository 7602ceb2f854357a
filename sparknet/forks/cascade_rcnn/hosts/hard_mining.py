"""HardMining: boxes with the largest losses (Cascade R-CNN: hard_mining_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import put_rows
from sparknet.errors import LayerError


class HardMiningHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        losses = bottoms[0].data.ravel()
        images = bottoms[1].data.reshape(len(losses), 5)[:, 0].astype(np.int64)
        if len(images) and not (images.min() >= 0 and images.max() < values["images"]):
            raise LayerError(
                self.node.name,
                f"HardMining: a box is of image {images.max()}; num_image is {values['images']}",
            )
        kept: list[int] = []
        left: list[int] = []
        order = np.lexsort((np.arange(len(losses)), losses))[::-1]
        for image in np.unique(images):
            mine = order[images[order] == image].tolist()
            kept += mine[: values["each"]]
            left += mine[values["each"] :]
        left.sort(key=lambda row: (losses[row], row), reverse=True)
        kept += left[: tops[0].shape[0] - len(kept)]
        for bottom, top in zip(bottoms[1:], tops, strict=True):
            put_rows(top, bottom.data[sorted(kept)])
