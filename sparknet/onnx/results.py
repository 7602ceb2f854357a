"""Which layers of a net compute its results, and whether its records stay apart in them."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.graph import Graph, Node
from sparknet.graph.records import Outline
from sparknet.layers import TEST


def is_source(node: Node) -> bool:
    return node.layer.is_input or node.layer.records


def needed(graph: Graph) -> list[Node]:
    """The layers that compute results: none that judge, and none that prepare labels."""
    kept: list[Node] = []
    labels = _label_layers(graph)
    without: set[int] = set()
    for number, node in enumerate(graph.nodes):
        if number in labels or _judges(node) or without.intersection(node.bottom_ids):
            without.update(top for top in node.top_ids if top not in node.bottom_ids)
        elif node.tops or is_source(node):
            kept.append(node)
    return kept


def _judges(node: Node) -> bool:
    return bool(node.layer.loss or node.layer.judges)


def _label_layers(graph: Graph) -> set[int]:
    """The numbers of the layers without parameters between the inputs and what a layer that
    judges compares with: TrueBoxes, say."""
    plain: set[int] = set()
    readers: dict[int, list[tuple[int, int]]] = {}
    for number, node in enumerate(graph.nodes):
        if is_source(node) or (not node.plan.params and plain.issuperset(node.bottom_ids)):
            plain.update(node.top_ids)
        for place, blob in enumerate(node.bottom_ids):
            readers.setdefault(blob, []).append((number, place))
    found: set[int] = set()
    for number, node in reversed([*enumerate(graph.nodes)]):
        read = [reader for top in node.top_ids for reader in readers.get(top, [])]
        if not read or is_source(node) or not plain.issuperset(node.top_ids):
            continue
        if all(one in found or (place and _judges(graph.nodes[one])) for one, place in read):
            found.add(number)
    return found


def blobs_of_records(nodes: Sequence[Node]) -> set[str] | None:
    """The blobs of which more records give more rows; None unless those are all that depend on
    the records."""
    if any(node.layer.time_first for node in nodes):
        return None  # Steps, on the first axis, are written one by one.
    if any(any(node.layer.parameter.input_param.record_axis) for node in nodes):
        return None  # The first axis is written as that of records.
    inputs = {
        top: shape
        for node in nodes
        if is_source(node)
        for top, shape in zip(node.tops, node.plan.tops, strict=True)
    }
    layers = [node.layer for node in nodes if not is_source(node)]
    outline = Outline([layer.parameter for layer in layers], TEST)
    shapes, axes = outline.axes(inputs, dict.fromkeys(inputs, 0))
    for layer in layers:
        read = [name for name in layer.parameter.bottom if name in axes or name not in shapes]
        if read and any(axes.get(top) != 0 for top in layer.parameter.top):
            return None
        if any(layer.mixes(shapes[name], axes[name]) for name in read):
            return None
    return set(axes)
