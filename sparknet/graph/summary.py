"""A net as a table: layer, type, output shape, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from sparknet.errors import SparkNetError
from sparknet.graph.build import build_in_state
from sparknet.graph.graph import Graph, Node
from sparknet.graph.unknown import LeftOut
from sparknet.layers.layer import count, shape_text
from sparknet.proto import caffe_pb2

HEAD = ("Layer", "Type", "Output shape", "Parameters")
WIDEST = 60


def summary(graph: Graph, splits: bool = False) -> str:
    """Return aligned plain text, a line for each layer, and a total; shared parameters once."""
    rows = [_row(graph, node) for node in graph.nodes if splits or not node.layer.is_split]
    lines = list(aligned([HEAD, *rows], words=3))
    rule = "-" * max(map(len, lines))
    skipped = [_reason(layer) for layer in graph.left_out]
    return "\n".join([lines[0], rule, *lines[1:], rule, *skipped, _total(graph)])


def html_summary(graph: Graph) -> str:
    """Return the same table as HTML, for notebooks."""
    rows = [_row(graph, node) for node in graph.nodes if not node.layer.is_split]
    head = _html_row(HEAD, "th")
    body = "".join(_html_row(row, "td") for row in rows)
    name = f"<b>{escape(graph.name)}</b>, {escape(_total(graph))}"
    return f"{name}<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _html_row(row: Sequence[str], tag: str) -> str:
    """Words begin at the left, where notebooks set all at the right; the last column is numbers."""
    sides = (*["left"] * (len(row) - 1), "right")
    cells = (
        f'<{tag} style="text-align:{side}">{escape(text)}</{tag}>'
        for side, text in zip(sides, row, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _reason(layer: LeftOut) -> str:
    name, kind = cell(layer.name, WIDEST), cell(layer.type, WIDEST)
    return f"left out: {name} ({kind}): {layer.reason}"


def _row(graph: Graph, node: Node) -> tuple[str, ...]:
    shapes = ", ".join(shape_text(graph.blob_shapes[blob]) for blob in node.top_ids)
    words = (cell(text, WIDEST) for text in (node.name, node.type, shapes))
    return (*words, _parameters(node))


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


def cell(text: str, widest: int) -> str:
    """Return one line of printable text, cut where it would spoil the table."""
    printable = "".join(char if char.isprintable() else "?" for char in text[: widest + 1])
    return printable if len(printable) <= widest else printable[: widest - 1] + "…"


def aligned(rows: Sequence[Sequence[str]], words: int) -> Iterator[str]:
    """Columns of one width each, the first `words` of them to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(
            text.ljust(width) if column < words else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield line.rstrip()


def outline(net: caffe_pb2.NetParameter) -> list[dict[str, Any]]:
    """Name, type, bottoms, tops, output shape and parameters of each layer."""
    try:
        return outline_of(build_in_state(net))
    except SparkNetError:  # data will decide its shapes
        return [
            {"name": one.name, "type": one.type, "bottoms": [*one.bottom], "tops": [*one.top]}
            for one in net.layer
        ]


def outline_of(graph: Graph) -> list[dict[str, Any]]:
    """Return the same of a net that has shapes."""
    names = list(graph.blob_names)  # a copy that a split makes has the name of what it copies
    for node in graph.nodes:
        if node.layer.is_split:
            for copy in node.top_ids:
                names[copy] = names[node.bottom_ids[0]]
    return [
        {
            "name": node.name,
            "type": node.type,
            "bottoms": [names[blob] for blob in node.bottom_ids],
            "tops": list(node.tops),
            "shape": [list(graph.blob_shapes[blob]) for blob in node.top_ids[:1]],
            "parameters": sum(count(ref.shape) for ref in node.params if ref.owned),
        }
        for node in graph.nodes
        if not node.layer.is_split
    ]
