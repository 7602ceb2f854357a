"""A net as a table: layer, type, output shape, parameters."""

from __future__ import annotations

from sparknet.graph.graph import Graph
from sparknet.graph.node import Node
from sparknet.layers.layer import count, shape_text

HEAD = ("Layer", "Type", "Output shape", "Parameters")
WIDEST = 60


def summary(graph: Graph, splits: bool = False) -> str:
    """Aligned plain text; a line for each layer, and a total.

    A parameter that an earlier layer owns is marked ``shared`` and counted
    there.  Split layers, which only copy, are shown on request.
    """
    rows = [_row(graph, node) for node in graph.nodes if splits or not node.layer.splits]
    lines = _align([HEAD, *rows])
    rule = "-" * max(map(len, lines))
    return "\n".join([lines[0], rule, *lines[1:], rule, _total(graph)])


def _row(graph: Graph, node: Node) -> tuple[str, str, str, str]:
    shapes = ", ".join(shape_text(graph.blob_shapes[blob]) for blob in node.top_ids)
    return _cell(node.name), _cell(node.type), _cell(shapes), _parameters(node)


def _parameters(node: Node) -> str:
    owned = sum(count(ref.shape) for ref in node.params if ref.owned)
    if all(ref.owned for ref in node.params):
        return f"{owned:,}"
    return f"{owned:,} + shared" if owned else "shared"


def _total(graph: Graph) -> str:
    blobs, params = graph.blob_bytes, graph.param_bytes
    return (
        f"{graph.param_count:,} parameters ({_size(params)}), "
        f"{_size(blobs)} of blobs in {len(graph.nodes):,} layers"
    )


def _size(number: int) -> str:
    size, unit = float(number), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{number} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def _cell(text: str) -> str:
    """One line of printable text, cut where it would spoil the table."""
    shown = "".join(char if char.isprintable() else "?" for char in text[: WIDEST + 1])
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 1] + "…"


def _align(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return [
        "  ".join(
            cell.rjust(width) if column == len(HEAD) - 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
