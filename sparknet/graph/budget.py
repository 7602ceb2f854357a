"""What a net of unknown origin may ask for: numbers to hold, and work for one pass.

A few bytes can describe blobs of gigabytes and loops of hours.  Whoever trusts a net builds any.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from sparknet.errors import LayerError
from sparknet.graph.graph import Graph
from sparknet.graph.node import Node
from sparknet.layers.layer import count
from sparknet.proto.untrusted import UNTRUSTED

NUMBERS = 1 << 28
"""In all blobs, and in the parameters that no file holds: a gigabyte."""
FOR_EACH_WEIGHT = 32
"""Further numbers for each parameter value that a file holds."""
WORK = 1 << 40
"""Multiplications, or what takes as long: a minute, or less."""


def check_budget(graph: Graph, held: Collection[int]) -> None:
    """Refuse a net of unknown origin that asks for more; ``held`` are the places in
    ``graph.params`` of what files or the caller give."""
    if not any(node.layer.parameter.untrusted for node in graph.nodes):
        return
    weights = sum(count(graph.params[place].shape) for place in held)
    most = NUMBERS + FOR_EACH_WEIGHT * weights
    numbers = work = 0
    for node in graph.nodes:
        numbers += _numbers(node, graph, held)
        work += node.layer.work(node.plan, [graph.blob_shapes[blob] for blob in node.bottom_ids])
        if numbers > most:
            _refuse(node, f"would hold {numbers} numbers; {most}", "are the most")
        if work > WORK:
            _refuse(node, f"would take {work} multiplications a pass; {WORK}", "are the most")


def _numbers(node: Node, graph: Graph, held: Collection[int]) -> int:
    own = [ref for ref in node.params if ref.owned and ref.learnable not in held]
    total = sum(count(ref.shape) for ref in own)
    if not node.layer.is_view:
        made = {*node.top_ids}.difference(node.bottom_ids)
        total += sum(count(graph.blob_shapes[blob]) for blob in made)
    return total


def _refuse(node: Node, what: str, most: str) -> NoReturn:
    raise LayerError(
        node.name, f"{node.type}: the layers up to this one {what} {most}: {UNTRUSTED}"
    )
