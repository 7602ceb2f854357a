"""The least arithmetic (products and convolutions alone) and memory traffic that a layer needs."""

from __future__ import annotations

from dataclasses import dataclass

from sparknet.graph.graph import FLOAT_BYTES, Graph, Node
from sparknet.layers import Shape
from sparknet.layers.layer import count


@dataclass(frozen=True)
class Work:
    """The cost of a layer's forward pass and of its backward pass."""

    forward_flops: int
    backward_flops: int
    forward_bytes: int
    backward_bytes: int


def work(graph: Graph, node: Node) -> Work:
    """Return the least cost of a layer at the graph's shapes."""
    forward = forward_flops(graph, node)
    return Work(
        forward,
        forward * _products(node),
        _forward_bytes(graph, node),
        _backward_bytes(graph, node),
    )


def forward_flops(graph: Graph, node: Node) -> int:
    """Return the operations of one forward pass."""
    return 2 * node.layer.products(node.plan, _shapes(graph, node)[0])


def _products(node: Node) -> int:
    """Count a product for the weights' gradient and one for each input's."""
    if not node.needs_backward:
        return 0
    return int(any(ref.needs_gradient for ref in node.params)) + int(node.propagate_down[0])


def _shapes(graph: Graph, node: Node) -> tuple[list[Shape], list[Shape]]:
    return (
        [graph.blob_shapes[blob] for blob in node.bottom_ids],
        [graph.blob_shapes[blob] for blob in node.top_ids],
    )


def _gathers_weights(node: Node) -> bool:
    """Return whether a layer reads only as many weights as it writes values (Embed)."""
    return node.layer.takes(0) == "indices"


def _forward_bytes(graph: Graph, node: Node) -> int:
    if node.layer.is_view:
        return 0
    bottoms, tops = _shapes(graph, node)
    moved = sum(map(count, bottoms + tops))
    return FLOAT_BYTES * (moved + (count(tops[0]) if _gathers_weights(node) else node.param_count))


def _backward_bytes(graph: Graph, node: Node) -> int:
    """Count gradients read and written, those of weights twice, as they add up."""
    if not node.needs_backward or (node.layer.is_view and len(node.tops) < 2):
        return 0
    bottoms, tops = _shapes(graph, node)
    out = sum(
        count(shape)
        for shape, propagate in zip(bottoms, node.propagate_down, strict=True)
        if propagate
    )
    learned = sum(count(ref.shape) for ref in node.params if ref.needs_gradient)
    moved = sum(map(count, tops)) + out
    if _gathers_weights(node):
        return FLOAT_BYTES * (moved + 2 * count(tops[0]))
    if learned:
        moved += sum(map(count, bottoms)) + 2 * learned
    return FLOAT_BYTES * (moved + (node.param_count if out else 0))
