"""Net: pycaffe's interface to a net, on the engine."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from sparknet.caffe.blob import Blob
from sparknet.caffe.runtime import Runtime
from sparknet.graph import build
from sparknet.proto import read_net


class Net:
    def __init__(self, network_file: str, phase: int, level: int = 0, stages: Sequence[str] = ()) -> None:
        self._runtime = Runtime(build(read_net(network_file), phase, level, stages or ()), 0)

    @classmethod
    def from_proto(cls, proto: Any, phase: int) -> Net:
        net = cls.__new__(cls)
        net._runtime = Runtime(build(proto, phase), 0)
        return net

    @property
    def graph(self) -> Any:
        return self._runtime.graph

    @property
    def _layer_names(self) -> list[str]:
        return self.graph.layers

    @property
    def blobs(self) -> OrderedDict[str, Blob]:
        return OrderedDict(zip(self.graph.blob_names, self._runtime.blobs, strict=True))

    @property
    def blob_loss_weights(self) -> dict[str, float]:
        return {name: self.graph.loss_weights.get(name, 0.0) for name in self.graph.blob_names}

    @property
    def params(self) -> OrderedDict[str, list[Blob]]:
        pairs = zip(self.graph.nodes, self._runtime.params, strict=True)
        return OrderedDict((node.name, list(own)) for node, own in pairs if own)

    @property
    def inputs(self) -> list[str]:
        return list(self.graph.inputs)

    @property
    def outputs(self) -> list[str]:
        return list(self.graph.outputs)

    def forward(self) -> dict[str, Any]:
        self._runtime.forward(0, len(self.graph.nodes) - 1)
        return {name: self.blobs[name].data for name in self.outputs}

    def backward(self) -> None:
        self._runtime.backward(len(self.graph.nodes) - 1, 0)

    def reshape(self) -> None:
        self._runtime.reshape()

    def clear_param_diffs(self) -> None:
        self._runtime.clear_param_diffs()
