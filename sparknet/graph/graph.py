"""A net whose description has been worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index

from sparknet.errors import SpecError
from sparknet.graph.params import Learnable, ParamRef
from sparknet.graph.unknown import LeftOut
from sparknet.layers import Layer, Plan, Shape
from sparknet.layers.layer import MAX_AXES, MAX_COUNT, count, shape_text
from sparknet.native.alone import cached_property
from sparknet.proto import caffe_pb2


def reshape_nodes(
    nodes: Sequence[Node], old: Sequence[Shape], shapes: Mapping[str, Sequence[int]]
) -> tuple[tuple[Node, ...], tuple[Shape, ...]]:
    """Return the nodes and the blob shapes that follow from new shapes of source blobs."""
    targets = {name: _checked(name, tuple(shape)) for name, shape in shapes.items()}
    _check_names(nodes, targets)
    nodes_new = list(old)
    return tuple(_reshape_node(node, old, nodes_new, targets) for node in nodes), tuple(nodes_new)


def follow(node: Node, shapes: Sequence[Shape]) -> Node:
    """Return the node, planned again for the current shapes (Caffe: layer.hpp, Forward)."""
    if not node.bottom_ids:
        return replace(node, plan=replace(node.plan, tops=tuple(shapes[j] for j in node.top_ids)))
    plan = node.layer.plan([shapes[blob] for blob in node.bottom_ids])
    _check_params(node, plan)
    return replace(node, plan=plan)


class Plans:
    """What `follow` returned for one net's layers: batches of a few sizes take turns."""

    SIZES = 4

    def __init__(self) -> None:
        self._nodes: dict[int, dict[tuple[Shape, ...], Node]] = {}

    def follow(self, number: int, node: Node, shapes: Sequence[Shape]) -> Node:
        if node.layer.host:
            return follow(node, shapes)
        plans = self._nodes.setdefault(number, {})
        key = tuple(shapes[blob] for blob in node.bottom_ids or node.top_ids)
        if key not in plans:
            if len(plans) == self.SIZES:
                plans.clear()
            plans[key] = follow(node, shapes)
        return plans[key]


def _reshape_node(
    node: Node, old: Sequence[Shape], shapes: list[Shape], target: Mapping[str, Shape]
) -> Node:
    if node.bottom_ids and all(shapes[blob] == old[blob] for blob in node.bottom_ids):
        return node
    if not node.bottom_ids:
        for blob, name in zip(node.top_ids, node.tops, strict=True):
            shapes[blob] = target.get(name, shapes[blob])
    node = follow(node, shapes)
    for blob, shape in zip(node.top_ids, node.plan.tops, strict=True):
        shapes[blob] = shape
    return node


def _check_params(node: Node, plan: Plan) -> None:
    before, after = node.plan.params, plan.params
    if len(before) != len(after):
        node.layer.fail(f"the new shapes ask for {len(after)} parameters, not {len(before)}")
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.shape != new.shape:
            node.layer.fail(
                f"the new shapes do not fit parameter {number}, which is {shape_text(old.shape)} "
                f"and would have to be {shape_text(new.shape)}"
            )


def _check_names(nodes: Sequence[Node], target: Mapping[str, Shape]) -> None:
    sources = {name for node in nodes if not node.bottom_ids for name in node.tops}
    for name in target:
        if name not in sources:
            listed = ", ".join(f"'{source}'" for source in sorted(sources)[:8]) or "none"
            raise SpecError(f"the net has no input '{name[:80]}' to reshape; its inputs: {listed}")


def _checked(name: str, shape: Sequence[int]) -> Shape:
    if len(shape) > MAX_AXES:
        raise SpecError(f"input '{name}' has {len(shape)} axes; {MAX_AXES} is the most")
    sizes = tuple(index(size) for size in shape)
    if min(sizes, default=0) < 0:
        raise SpecError(f"input '{name}' has a negative size: {shape_text(sizes)}")
    if max(sizes, default=0) > MAX_COUNT or count(sizes) > MAX_COUNT:
        raise SpecError(f"input '{name}' has more than {MAX_COUNT} values: {shape_text(sizes)}")
    return sizes


@dataclass(frozen=True, eq=False)
class Node:
    """A layer in its place."""

    name: str
    type: str
    layer: Layer
    plan: Plan
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    bottom_ids: tuple[int, ...]
    """Each bottom's place in ``Graph.blob_names``."""
    top_ids: tuple[int, ...]
    loss_weights: tuple[float, ...]
    """One for each top; 0 where the top is no loss."""
    needs_backward: bool
    propagate_down: tuple[bool, ...]
    """For each bottom, whether the layer computes its gradient."""
    params: tuple[ParamRef, ...] = ()

    @property
    def phase(self) -> int:
        return self.layer.phase

    @property
    def in_place(self) -> bool:
        return any(top in self.bottom_ids for top in self.top_ids)

    @property
    def param_count(self) -> int:
        """Values in this layer's parameter blobs, shared ones among them."""
        return sum(count(ref.shape) for ref in self.params)


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
