"""DummyData: constants once, random values again in each pass (Caffe: dummy_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import DrawingHost
from sparknet.graph import Node
from sparknet.layers import Shape
from sparknet.layers.fillers import fill


class DummyDataHost(DrawingHost):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.filled: list[Shape] = []

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        shapes = [tuple(top.shape) for top in tops]
        for top, filler, refill in zip(tops, values["fillers"], values["refill"], strict=True):
            if refill or self.filled != shapes:
                top.data[...] = fill(filler, tuple(top.shape), self.rng)
        self.filled = shapes
