"""Charts as SVG that takes the page's width and colours, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import isfinite

from sparknet.graph.curves import Axis, ticks
from sparknet.report.runs import Json, ReportedRun
from sparknet.training.history import KINDS, blob_name, edges

WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 40
MARKED = 60
"""The most points that are marked one by one."""
MOST = 600
"""The most points of a curve."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Curve:
    """A named curve; ``shade`` is the number of its colour."""

    name: str
    points: Points
    shade: int
    dashed: bool = False


def lines(title: str, curves: Sequence[Curve], across: str) -> str:
    """Return a chart of curves, with a legend where there is more than one; empty without a
    point.
    """
    visible = [Curve(c.name, _thinned_points(c.points), c.shade, c.dashed) for c in curves]
    visible = [curve for curve in visible if curve.points]
    if not visible:
        return ""
    return _figure(title, _legend(visible), _lines(visible, across), title)


def _thinned_points(points: Points) -> Points:
    """Return the points with finite values, thinned to `MOST`."""
    finite = [(x, y) for x, y in points if isfinite(x) and isfinite(y)]
    step = max(1, -(-len(finite) // MOST))
    return finite[::step] if step == 1 or not finite else [*finite[::step], finite[-1]]


def _lines(curves: Sequence[Curve], across: str) -> Iterator[str]:
    points = [point for curve in curves for point in curve.points]
    x, y = _axis([x for x, _ in points], "x"), _axis([y for _, y in points], "y")
    yield from _grid(x, y, across)
    for curve in curves:
        places = [f"{x.place(at):.1f},{y.place(value):.1f}" for at, value in curve.points]
        look = f"line c{curve.shade % 8}" + (" dashed" if curve.dashed else "")
        yield f'<polyline class="{look}" points="{" ".join(places)}"/>'
        if len(places) <= MARKED:
            for place, (at, value) in zip(places, curve.points, strict=True):
                cx, _, cy = place.partition(",")
                tooltip = escape(f"{curve.name}: {value:.5g} at {at:.5g} {across}")
                dot = f'<circle class="dot f{curve.shade % 8}" cx="{cx}" cy="{cy}" r="2.6">'
                yield f"{dot}<title>{tooltip}</title></circle>"


def _axis(values: Sequence[float], kind: str) -> Axis:
    marks = ticks(min(values), max(values))
    low, high = min(marks[0], *values), max(marks[-1], *values)
    if kind == "x":
        return Axis(low, high, LEFT, WIDTH - RIGHT)
    return Axis(low, high, HEIGHT - BOTTOM, TOP)


def _grid(x: Axis, y: Axis, across: str) -> Iterator[str]:
    for tick in ticks(x.low, x.high):
        if x.low <= tick <= x.high:
            yield _text(x.place(tick), HEIGHT - BOTTOM + 15, short(tick), "middle")
    yield from _grid_down(y)
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, across, "middle")


def stacks(
    title: str,
    names: Sequence[str],
    bars: Sequence[tuple[str, Sequence[float]]],
    across: str,
    unit: str,
) -> str:
    """Return a bar for each label, stacked of named parts."""
    if not bars or not any(sum(values) for _, values in bars):
        return ""
    legend = [Curve(name, [], shade) for shade, name in enumerate(names)]
    return _figure(title, _legend(legend, "s"), _stacks(names, bars, across, unit), title)


def _stacks(
    names: Sequence[str], bars: Sequence[tuple[str, Sequence[float]]], across: str, unit: str
) -> Iterator[str]:
    y = _axis([0.0, *(sum(values) for _, values in bars)], "y")
    x = Axis(0.0, float(len(bars)), LEFT, WIDTH - RIGHT)
    every = max(1, -(-len(bars) // 8))
    yield from _grid_down(y)
    for place, (label, values) in enumerate(bars):
        begin, wide = x.place(place), x.place(place + 1) - x.place(place)
        base = 0.0
        for shade, (name, value) in enumerate(zip(names, values, strict=True)):
            top, bottom = y.place(base + value), y.place(base)
            base += value
            if bottom - top < 0.05:
                continue
            tooltip = escape(f"{across} {label}: {name} {value:.4g} {unit}")
            box = f'x="{begin + 0.06 * wide:.1f}" width="{0.88 * wide:.1f}" y="{top:.1f}"'
            high = f'height="{bottom - top:.1f}"'
            yield f'<rect class="s{shade}" {box} {high}><title>{tooltip}</title></rect>'
        if place % every == 0:
            yield _text(begin + wide / 2, HEIGHT - BOTTOM + 15, label, "middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, across, "middle")


def _grid_down(y: Axis) -> Iterator[str]:
    ends = f'class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}"'
    for tick in ticks(y.low, y.high):
        if y.low <= tick <= y.high:
            at = y.place(tick)
            yield f'<line {ends} y1="{at:.1f}" y2="{at:.1f}"/>'
            yield _text(LEFT - 6, at + 4, short(tick), "end")


def _figure(title: str, legend: str, parts: Iterator[str], label: str) -> str:
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}"'
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>{legend}"
        f'<svg class="chart" {box}>{"".join(parts)}</svg></figure>'
    )


def _legend(curves: Sequence[Curve], kind: str = "f") -> str:
    entries = [curve for curve in curves if curve.name]
    if len(entries) < 2:
        return ""
    items = "".join(
        f'<span><i class="{kind}{curve.shade % 8}{" open" if curve.dashed else ""}"></i>'
        f"{escape(curve.name)}</span>"
        for curve in entries
    )
    return f'<p class="legend">{items}</p>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def short(value: float) -> str:
    """Return a number of few characters: 12k, 3.4M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.4g}{unit}"
    return f"{value:.4g}"


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], marked: Mapping[int, str] | None = None
) -> str:
    """Return a table that scrolls on narrow screens; ``marked`` rows have a class."""
    marks = marked or {}
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f'<tr class="{marks.get(number, "")}">'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for number, row in enumerate(rows)
    )
    inner = f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def confusion(rows: Sequence[Sequence[float]]) -> str:
    """Return how often each class, a row, was taken for each, a column."""
    above = f'<tr><th colspan="2"></th><th colspan="{len(rows)}">predicted class</th></tr>'
    names = "".join(f"<th>{label}</th>" for label in range(len(rows)))
    body = ""
    for label, row in enumerate(rows):
        count = sum(row)
        right = f"{row[label] / count:.1%}" if count else "none seen"
        cells = "".join(
            f'<td style="--share:{round(100 * value / (count or 1))}%">{value:.0f}</td>'
            for value in row
        )
        body += f"<tr><th>{label}</th><td>{right}</td>{cells}</tr>"
    head = f"<thead>{above}<tr><th>true class</th><th>right</th>{names}</tr></thead>"
    inner = f"{head}<tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="confusion">{inner}</table></div>'


_CURVES = 8
"""The most parameters that have a curve of norms: the largest ones."""
_HISTOGRAMS = 40
"""The most parameters whose histograms are drawn, from the first layer on."""


def layer_charts(run: ReportedRun) -> Iterator[str]:
    """Norms over the iterations, a table, and histograms of the first and the last look."""
    looks = run.of_kind("layers")
    if not looks:
        return
    names = [blob_name(one) for one in looks[-1]["parameters"]]
    if len(looks) > 1:
        charts = "".join(_norms(looks, kind) for kind in KINDS)
        yield f'<div class="charts">{charts}</div>'
    yield _table(looks if len(looks) == 1 else (looks[0], looks[-1]), names)
    histograms = "".join(
        _histogram(looks, name, kind) for name in names[:_HISTOGRAMS] for kind in KINDS
    )
    title = "Histograms" if len(names) <= _HISTOGRAMS else f"Histograms of {_HISTOGRAMS} parameters"
    yield f'<details><summary>{title}</summary><div class="charts">{histograms}</div></details>'


def _norms(looks: Sequence[Json], kind: str) -> str:
    largest = sorted(looks[-1]["parameters"], key=lambda one: -int(one["size"]))[:_CURVES]
    parameters = [blob_name(one) for one in largest]
    curves = [Curve(name, _over(looks, name, kind), shade) for shade, name in enumerate(parameters)]
    return lines(f"Norms of {kind}", curves, "iteration")


def _over(looks: Sequence[Json], name: str, kind: str) -> Points:
    points = [(float(look["iteration"]), _value_of(look, name)) for look in looks]
    return [
        (at, float(one[kind]["norm"]))
        for at, one in points
        if one is not None and one[kind]["norm"] is not None
    ]


def _value_of(look: Json, name: str) -> Json | None:
    return next((one for one in look["parameters"] if blob_name(one) == name), None)


def _table(looks: Sequence[Json], names: Sequence[str]) -> str:
    rows = []
    for name in names:
        norms = [_value_of(look, name) for look in looks]
        if (last := norms[-1]) is not None:
            cells = [_norm(one, kind) for kind in KINDS for one in norms]
            rows.append([name, f"{last['size']:,}", *cells])
    heads = [f"{kind} at {look['iteration']}" for kind in KINDS for look in looks]
    return table(["norms", "size", *heads], rows)


def _norm(one: Json | None, kind: str) -> str:
    norm = None if one is None else one[kind]["norm"]
    return "–" if norm is None else short(float(norm))


def _histogram(looks: Sequence[Json], name: str, kind: str) -> str:
    """Return the shares of the values in each bin, at the first look and at the last."""
    curves = []
    for shade, look in enumerate(looks[:1] if len(looks) == 1 else (looks[0], looks[-1])):
        one = _value_of(look, name)
        if one is not None:
            ends, counts = edges(one[kind]), one[kind]["counts"]
            total = sum(counts) or 1
            points = [
                ((begin + end) / 2, count / total)
                for (begin, end), count in zip(pairwise(ends), counts, strict=True)
            ]
            curves.append(Curve(f"iteration {look['iteration']}", points, shade))
    return lines(f"{name}: {kind}", curves, "value")
