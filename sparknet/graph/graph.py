"""A net whose description has been worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparknet.graph.node import Node
from sparknet.graph.params import Learnable
from sparknet.graph.reshape import reshape_nodes
from sparknet.graph.unknown import LeftOut
from sparknet.layers import Shape
from sparknet.layers.layer import count
from sparknet.native.alone import cached_property
from sparknet.proto import caffe_pb2

FLOAT_BYTES = 4


@dataclass(frozen=True, eq=False)
class Graph:
    """A net's layers in order, with every shape, split, shared parameter and gradient decided.

    Nothing has run and no tensor exists.  Two graphs are never equal unless
    they are the same object; compare ``parameter`` and ``blobs`` instead."""

    name: str
    phase: int
    nodes: tuple[Node, ...]
    blob_names: tuple[str, ...]
    """In order of creation; automatic tops may repeat a name."""
    blob_shapes: tuple[Shape, ...]
    inputs: tuple[str, ...]
    """The tops of Input layers."""
    outputs: tuple[str, ...]
    """Blobs that nothing reads, in byte order of their names."""
    params: tuple[Learnable, ...]
    """Parameter blobs, each shared one once, in order of first use."""
    parameter: caffe_pb2.NetParameter = field(repr=False)
    """The description in force: filtered, split, with each layer's phase."""
    left_out: tuple[LeftOut, ...] = ()
    """Layers that were not built, where unknown ones are skipped."""

    @cached_property
    def blobs(self) -> dict[str, Shape]:
        """Blob name → shape, in order of creation; of equal names the last one counts."""
        return dict(zip(self.blob_names, self.blob_shapes, strict=True))

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Layer name → place in ``nodes``; of equal names the last one counts."""
        return {node.name: index for index, node in enumerate(self.nodes)}

    @property
    def layers(self) -> list[str]:
        return [node.name for node in self.nodes]

    @property
    def loss_weights(self) -> dict[str, float]:
        """Blob name → weight, of the blobs that make up the objective."""
        return {
            top: weight
            for node in self.nodes
            for top, weight in zip(node.tops, node.loss_weights, strict=True)
            if weight
        }

    def node(self, name: str) -> Node:
        return self.nodes[self.node_index[name]]

    @property
    def param_count(self) -> int:
        """Learnable values of the net, shared ones counted once."""
        return sum(count(param.shape) for param in self.params)

    @property
    def blob_bytes(self) -> int:
        """Memory for the values of all blobs; their gradients take as much again."""
        return FLOAT_BYTES * sum(map(count, self.blob_shapes))

    @property
    def param_bytes(self) -> int:
        """Memory for the values of all parameters; their gradients take as much again."""
        return FLOAT_BYTES * self.param_count

    def reshape(self, shapes: Mapping[str, Sequence[int]]) -> Graph:
        """Return the net for other shapes of blobs without makers (Caffe: net.cpp, Reshape)."""
        nodes, blob_shapes = reshape_nodes(self.nodes, self.blob_shapes, shapes)
        return replace(self, nodes=nodes, blob_shapes=blob_shapes)
