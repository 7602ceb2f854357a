"""HDF5Data: batches from a list of HDF5 files (Caffe: hdf5_data_layer.cpp)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.batches import blaming
from sparknet.caffe.host.host import Host
from sparknet.graph import Node
from sparknet.loaders.hdf5_rows import Rows


class HDF5DataHost(Host):
    """A file's rows lie in memory while they are in use, so nothing is fetched ahead."""

    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        values, shapes = node.plan.values, [top[1:] for top in node.plan.tops]
        names = node.layer.parameter.top
        self.tops = node.plan.tops
        self.rows = Rows(values["files"], list(names), shapes, values["shuffle"], seed)
        self._dropped = weakref.finalize(self, self.rows.close)

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        for top, shape in zip(tops, self.tops, strict=True):
            if tuple(top.shape) != shape:
                top.reshape(*shape)
        with blaming(self.node):
            self.rows.fill([top.data for top in tops])

    def close(self) -> None:
        self._dropped()
