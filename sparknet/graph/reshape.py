"""The same net for other input shapes.  Caffe: net.cpp, Reshape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index

from sparknet.errors import SpecError
from sparknet.graph.node import Node
from sparknet.layers import Plan, Shape
from sparknet.layers.layer import MAX_AXES, MAX_COUNT, count, shape_text


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
