"""Python: the user's own layer, on the engine's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.vectors import BoolVec
from sparknet.errors import LayerError
from sparknet.graph import Node
from sparknet.layers.python import Python, blamed
from sparknet.layers.user_layer import BlobVec


class PythonHost(Host):
    """Runs the object that shape inference made, on real blobs (Caffe: python_layer.hpp)."""

    def __init__(self, node: Node, params: BlobVec, seed: int) -> None:
        super().__init__(node, params, seed)
        assert isinstance(node.layer, Python)
        self.instance: Any = node.layer.instance
        for blob, made in zip(params, self.instance.blobs, strict=True):
            blob.data[...] = made.data
        self.instance.blobs = params

    def reshape(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        self._call(lambda: self.instance.reshape(bottoms, tops))

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        self._call(lambda: self.instance.forward(bottoms, tops))

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        self._call(lambda: self.instance.backward(tops, BoolVec(propagate_down), bottoms))

    def _call(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except LayerError:
            raise
        except Exception as error:
            raise blamed(self.node.name, error) from error
