"""The net drawn: layers as boxes in ranks, data at the top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from sparknet.graph.plots import Drawing
from sparknet.graph.summary import cell

WIDE, HIGH, GAP, SKIP = 150, 34, 14, 22
_BOW = 110
_STYLE = (
    ".drawn{background:#fff}"
    ".drawn text{font:11px sans-serif;fill:#222}.drawn .layer .kind{fill:#666;font-size:9.5px}"
    ".drawn .layer rect{fill:#fff;stroke:#888}.drawn .learns rect{stroke:#1f77b4;stroke-width:2}"
    ".drawn .source rect{stroke:#2ca02c;stroke-width:2}.drawn .edge{fill:none;stroke:#888}"
)
_MOST = 600
"""The most layers that are drawn."""

Layer = Mapping[str, Any]


def plotted(layers: Sequence[Layer], name: str) -> Drawing:
    """Return a picture of a net's layers, which needs no style sheet around it."""
    return Drawing(drawing(layers, "net drawn", f"<style>{_STYLE}</style>"), f"net '{name}'")


def drawing(layers: Sequence[Layer], kind: str = "net", style: str = "") -> str:
    """Return an SVG of a net's layers; layers in place share the box before them."""
    boxes, edges = _boxes(layers[:_MOST])
    if not boxes:
        return ""
    ranks = _ranks(boxes, edges)
    rows: dict[int, list[int]] = {}
    for box, rank in enumerate(ranks):
        rows.setdefault(rank, []).append(box)
    widest = max(len(row) for row in rows.values())
    width, height = widest * (WIDE + GAP) + GAP, len(rows) * (HIGH + SKIP) + SKIP
    places = {
        box: (
            width / 2 + (number - (len(row) - 1) / 2) * (WIDE + GAP),
            SKIP + rank * (HIGH + SKIP) + HIGH / 2,
        )
        for rank, row in rows.items()
        for number, box in enumerate(_ordered(row, edges, ranks))
    }
    parts = [*_edges(edges, places), *_layer_boxes(boxes, places)]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" role="img" aria-label="the net" '
        f"{size}>{style}{''.join(parts)}</svg>"
    )


def _boxes(layers: Sequence[Layer]) -> tuple[list[list[Layer]], set[tuple[int, int]]]:
    """Layers by box, and the boxes that feed each other."""
    boxes: list[list[Layer]] = []
    makers: dict[str, int] = {}
    edges: set[tuple[int, int]] = set()
    for layer in layers:
        bottoms, tops = list(layer.get("bottoms", ())), list(layer.get("tops", ()))
        if bottoms and bottoms == tops and bottoms[0] in makers:
            boxes[makers[bottoms[0]]].append(layer)
            continue
        number = len(boxes)
        boxes.append([layer])
        edges |= {(makers[blob], number) for blob in bottoms if blob in makers}
        makers.update(dict.fromkeys(tops, number))
    return boxes, edges


def _ranks(boxes: Sequence[Any], edges: set[tuple[int, int]]) -> list[int]:
    """Return how far each box is from the data: boxes come in the order of computing."""
    ranks = [0] * len(boxes)
    for maker, user in sorted(edges, key=lambda edge: edge[1]):
        ranks[user] = max(ranks[user], ranks[maker] + 1)
    for maker, user in sorted(edges, reverse=True):  # inputs stand right above their first user
        if not any(other == maker for _, other in edges):
            ranks[maker] = max(
                ranks[maker], min(ranks[to] for frm, to in edges if frm == maker) - 1
            )
        del user
    return ranks


def _ordered(row: Sequence[int], edges: set[tuple[int, int]], ranks: Sequence[int]) -> list[int]:
    """Return a row's boxes near those that feed them."""

    def mean(box: int) -> float:
        makers = [maker for maker, user in edges if user == box]
        return sum(makers) / len(makers) if makers else box

    return sorted(row, key=mean)


def _edges(edges: set[tuple[int, int]], places: Mapping[int, tuple[float, float]]) -> Iterator[str]:
    for maker, user in sorted(edges):
        (x1, y1), (x2, y2) = places[maker], places[user]
        y1, y2 = y1 + HIGH / 2, y2 - HIGH / 2
        bend = max(8.0, (y2 - y1) / 2)
        curve = f"C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
        if x1 == x2 and y2 - y1 > SKIP:  # around the boxes between, which would hide it
            out = x1 + _BOW
            curve = f"C{out:.0f} {y1:.0f} {out:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
        yield f'<path class="edge" d="M{x1:.0f} {y1:.0f}{curve}"/>'


def _layer_boxes(
    boxes: Sequence[Sequence[Layer]], places: Mapping[int, tuple[float, float]]
) -> Iterator[str]:
    for number, box in enumerate(boxes):
        x, y = places[number]
        first = box[0]
        kind = "learns" if any(one.get("parameters") for one in box) else "plain"
        if not first.get("bottoms"):
            kind = "source"
        types = " + ".join(str(one.get("type", "")) for one in box)
        title = escape("\n".join(map(_tooltip, box)))
        left, top, middle = x - WIDE / 2, y - HIGH / 2, f'x="{x:.0f}" text-anchor="middle"'
        yield (
            f'<g class="layer {kind}"><title>{title}</title>'
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{WIDE}" height="{HIGH}" rx="5"/>'
            f'<text {middle} y="{y - 3:.0f}">{escape(_shortened(first.get("name")))}</text>'
            f'<text {middle} y="{y + 11:.0f}" class="kind">{escape(_shortened(types))}</text></g>'
        )


def _tooltip(layer: Layer) -> str:
    shapes = "".join(f" {' x '.join(map(str, shape))}" for shape in layer.get("shape", ()))
    count = layer.get("parameters")
    parameters = f", {count:,} parameters" if count else ""
    words = f"{layer.get('name')} ({layer.get('type')}){shapes}{parameters}"
    return "".join(char if char.isprintable() else "?" for char in words)


def _shortened(text: Any) -> str:
    return cell(str(text), 24)
