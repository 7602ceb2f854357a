"""ScaleRoute: boxes of a range of sizes (Cascade R-CNN: scale_route_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import put_rows
from sparknet.errors import LayerError


class ScaleRouteHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        boxes = bottoms[0].data.reshape(-1, 5)[:, 1:].astype(np.float64)
        if not len(boxes):
            raise LayerError(self.node.name, "ScaleRoute: there is no box")
        size = boxes[:, 2:] - boxes[:, :2]
        scales = np.sqrt(np.where((size >= 0).all(1), (size + 1).prod(1), 0))
        chosen = np.flatnonzero((scales >= values["low"]) & (scales < values["high"]))
        if not len(chosen):
            with np.errstate(divide="ignore"):
                far = np.abs(np.log2(scales / values["middle"]))
            chosen = far.argmin()[None]
        for bottom, top in zip(bottoms, tops, strict=True):
            put_rows(top, bottom.data[chosen])
