"""Contents: a net's layers, blobs and parameters (Caffe: python/caffe/_caffe.cpp, pycaffe.py)."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any

from sparknet.caffe import checks
from sparknet.caffe.blob import Blob
from sparknet.caffe.runtime import Runtime
from sparknet.errors import IndexOutOfRange, clean
from sparknet.graph import Graph, Node, html_summary
from sparknet.graph.boxes import plotted
from sparknet.graph.plots import Drawing
from sparknet.graph.summary import outline_of
from sparknet.layers.user_layer import BlobVec, DtypeVec, IntVec, LayerVec, StringVec, UserLayer
from sparknet.proto import caffe_pb2


class LayerView(UserLayer):
    """One entry of ``net.layers``: a type and its blobs, or a Python layer's own object."""

    def __init__(self, node: Node, blobs: BlobVec) -> None:
        self.type = node.type
        self.blobs = blobs
        self._node = node

    def reshape(self, bottom: Any, top: Any) -> None:
        """Set the tops' shapes from the bottoms'."""
        for name, blobs in (("bottom", bottom), ("top", top)):
            if not isinstance(blobs, (list, tuple)) or not all(isinstance(b, Blob) for b in blobs):
                checks.refuse(name, "a list of blobs", blobs)
        plan = self._node.layer.infer([tuple(blob.shape) for blob in bottom])
        for blob, shape in zip(top, plan.tops, strict=True):
            blob.reshape(*shape)

    def __repr__(self) -> str:
        return f"<{self.type} layer, {len(self.blobs)} parameter blob(s)>"


class Contents:
    """What a net consists of; `Net` adds what it does."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, graph = runtime, runtime.graph
        self._name: str | None = None
        self.blobs: OrderedDict[str, Blob] = OrderedDict(
            zip(graph.blob_names, self._runtime.blobs, strict=True)
        )
        pairs = list(zip(graph.nodes, self._runtime.params, strict=True))
        self.params: OrderedDict[str, BlobVec] = OrderedDict(
            (node.name, own) for node, own in pairs if own
        )
        users = self._runtime.user_layers()
        self.layers = LayerVec(
            users.get(number) or LayerView(node, own) for number, (node, own) in enumerate(pairs)
        )
        self._layer_names = StringVec(graph.layers)
        self._blob_names = StringVec(graph.blob_names)
        self.inputs = list(graph.inputs)
        self.outputs = list(graph.outputs)
        self._blobs = BlobVec(self._runtime.blobs)
        self._inputs = IntVec(self._blob_names.index(name) for name in self.inputs)
        self._outputs = IntVec(self._blob_names.index(name) for name in self.outputs)

    @property
    def graph(self) -> Graph:
        """Layers, shapes and gradients as they were worked out (ours, not pycaffe's)."""
        return self._runtime.graph

    def __repr__(self) -> str:
        count = sum(blob.count for blobs in self.params.values() for blob in blobs)
        state = "TRAIN" if self.graph.phase == caffe_pb2.TRAIN else "TEST"
        return (
            f"<caffe.Net '{clean(self.name)}', {state}: {len(self.layers)} layers, {count:,} "
            f"parameters, inputs {self.inputs}, outputs {self.outputs}>"
        )

    def _repr_html_(self) -> str:
        """Return the layers as HTML, for a notebook."""
        return html_summary(self.graph)

    def plot(self, out: str | os.PathLike[str] | None = None) -> Drawing:
        """Draw its layers for a notebook, or into ``out``, a file named .svg (ours)."""
        return plotted(outline_of(self.graph), self.name).saved(out)

    @property
    def name(self) -> str:
        """The net's own name, or what a program called it (ours, not pycaffe's)."""
        return self.graph.name if self._name is None else self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = checks.text("name", name)

    @property
    def blob_loss_weights(self) -> OrderedDict[str, float]:
        weights = self.graph.loss_weights
        return OrderedDict((name, weights.get(name, 0.0)) for name in self._blob_names)

    @property
    def _blob_loss_weights(self) -> DtypeVec:
        return DtypeVec(self.blob_loss_weights.values())

    @property
    def layer_dict(self) -> OrderedDict[str, Any]:
        return OrderedDict(zip(self._layer_names, self.layers, strict=True))

    @property
    def top_names(self) -> OrderedDict[str, list[str]]:
        return OrderedDict((node.name, list(node.tops)) for node in self.graph.nodes)

    @property
    def bottom_names(self) -> OrderedDict[str, list[str]]:
        return OrderedDict((node.name, list(node.bottoms)) for node in self.graph.nodes)

    def _bottom_ids(self, layer: int) -> IntVec:
        return IntVec(self.graph.nodes[self._number("layer", layer)].bottom_ids)

    def _top_ids(self, layer: int) -> IntVec:
        return IntVec(self.graph.nodes[self._number("layer", layer)].top_ids)

    def _number(self, name: str, layer: int) -> int:
        """Return the number of a layer that the net has."""
        number = checks.integer(name, layer)
        if not 0 <= number < len(self.layers):
            raise IndexOutOfRange(
                f"{name} is layer {number}; the net has {len(self.layers)} layers"
            )
        return number
