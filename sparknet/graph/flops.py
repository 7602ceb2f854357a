"""How much arithmetic and memory traffic a layer cannot do without.

Operations are those of the matrix products and convolutions, a multiplication and an addition
counting two; biases, activations, poolings and the like count none: memory limits them.  Bytes
are what a layer must move if each value comes from memory once and goes back once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from sparknet.graph.graph import FLOAT_BYTES, Graph
from sparknet.graph.node import Node
from sparknet.layers import Shape
from sparknet.layers.layer import count


@dataclass(frozen=True)
class Work:
    """What a layer's forward pass and its backward pass come to."""

    forward_flops: int
    backward_flops: int
    forward_bytes: int
    backward_bytes: int


def work(graph: Graph, node: Node) -> Work:
    """The least that a layer has to do for the shapes that the graph has."""
    forward = forward_flops(graph, node)
    return Work(
        forward,
        forward * _products(node),
        _forward_bytes(graph, node),
        _backward_bytes(graph, node),
    )


def forward_flops(graph: Graph, node: Node) -> int:
    """The operations of one forward pass."""
    rule = _RULES.get(node.type)
    return 0 if rule is None else 2 * rule(node, *_shapes(graph, node))


def _products(node: Node) -> int:
    """The backward pass has a product for the weights' gradient and one for each input's."""
    if not node.needs_backward:
        return 0
    return int(any(ref.needs_gradient for ref in node.params)) + int(node.propagate_down[0])


def _shapes(graph: Graph, node: Node) -> tuple[list[Shape], list[Shape]]:
    return (
        [graph.blob_shapes[blob] for blob in node.bottom_ids],
        [graph.blob_shapes[blob] for blob in node.top_ids],
    )


# -- multiplications with an addition each -------------------------------------------------


def _convolution(node: Node, bottoms: list[Shape], tops: list[Shape]) -> int:
    """Each output value takes a window of its group's channels, wherever the window lies."""
    return sum(map(count, tops)) * prod(node.params[0].shape[1:])


def _deconvolution(node: Node, bottoms: list[Shape], tops: list[Shape]) -> int:
    return sum(map(count, bottoms)) * prod(node.params[0].shape[1:])


def _inner_product(node: Node, bottoms: list[Shape], tops: list[Shape]) -> int:
    rows: int = count(tops[0][: node.plan.values["axis"]])
    return rows * count(node.params[0].shape)


def _recurrent(node: Node, bottoms: list[Shape], tops: list[Shape]) -> int:
    """Every matrix is used once for each step of each stream, the static input's once a stream."""
    values = node.plan.values
    steps, streams, static = values["steps"], values["streams"], values["static_inputs"]
    matrices = [ref.shape for ref in node.params if len(ref.shape) == 2]
    fixed = count(matrices.pop(1)) if static else 0
    total: int = streams * (steps * sum(map(count, matrices)) + fixed)
    return total


_RULES: dict[str, Callable[[Node, list[Shape], list[Shape]], int]] = {
    "Convolution": _convolution,
    "DepthwiseConvolution": _convolution,
    "Deconvolution": _deconvolution,
    "InnerProduct": _inner_product,
    "LSTM": _recurrent,
    "RNN": _recurrent,
}


# -- traffic -------------------------------------------------------------------------------

_VIEWS = frozenset({"Split", "Reshape", "Flatten", "Input", "Silence"})
"""Types that look at their bottoms' values forward: nothing moves."""
_GATHERING = frozenset({"Embed"})
"""Types that read as much of their weights as they write."""


def _forward_bytes(graph: Graph, node: Node) -> int:
    if node.type in _VIEWS:
        return 0
    bottoms, tops = _shapes(graph, node)
    moved = sum(map(count, bottoms + tops))
    return FLOAT_BYTES * (moved + (count(tops[0]) if node.type in _GATHERING else node.param_count))


def _backward_bytes(graph: Graph, node: Node) -> int:
    """Top gradients in, bottom gradients out; with weights also the input and the weights.

    Gradients of weights are added to: in and out.
    """
    if not node.needs_backward or node.type in _VIEWS - {"Split"}:
        return 0
    bottoms, tops = _shapes(graph, node)
    out = sum(
        count(shape) for shape, wanted in zip(bottoms, node.propagate_down, strict=True) if wanted
    )
    learned = sum(count(ref.shape) for ref in node.params if ref.needs_gradient)
    moved = sum(map(count, tops)) + out
    if node.type in _GATHERING:
        return FLOAT_BYTES * (moved + 2 * count(tops[0]))
    if learned:
        moved += sum(map(count, bottoms)) + 2 * learned
    return FLOAT_BYTES * (moved + (node.param_count if out else 0))
