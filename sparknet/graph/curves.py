"""Curves: line charts side by side, which a notebook shows and a file keeps."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sparknet.errors import extra
from sparknet.graph.plots import Drawing, StrPath

WIDTH, HEIGHT = 480, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 32, 44
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b")
TICKS = 5

Series = tuple[Sequence[float], list[float]]
"""Iterations, and a value at each."""


@dataclass(frozen=True)
class Panel:
    """One diagram: its vertical axis, and named curves."""

    title: str
    curves: dict[str, Series]
    across: str = "iteration"


@dataclass(frozen=True)
class Axis:
    """Maps values from ``low`` to ``high`` to pixels from ``begin`` to ``end``."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def svg(panels: Sequence[Panel]) -> str:
    """Return an SVG with the panels side by side."""
    width = WIDTH * len(panels)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" height="{HEIGHT}" font-family="sans-serif" font-size="11" '
        'style="max-width:100%;height:auto">'
    )
    parts = [head, f'<rect width="{width}" height="{HEIGHT}" fill="white"/>']
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({WIDTH * number})">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel) -> Iterator[str]:
    across = [at for series in panel.curves.values() for at in series[0]]
    values = [value for series in panel.curves.values() for value in series[1]]
    x_ticks, y_ticks = ticks(min(across), max(across)), ticks(min(values), max(values))
    x = Axis(min(x_ticks[0], *across), max(x_ticks[-1], *across), LEFT, WIDTH - RIGHT)
    y = Axis(min(y_ticks[0], *values), max(y_ticks[-1], *values), HEIGHT - BOTTOM, TOP)
    yield _text(WIDTH / 2, 18, panel.title, "middle", 13)
    yield _text(WIDTH / 2, HEIGHT - 8, panel.across, "middle")
    for tick in x_ticks:
        yield _line(x.place(tick), TOP, x.place(tick), HEIGHT - BOTTOM)
        yield _text(x.place(tick), HEIGHT - BOTTOM + 15, f"{tick:g}", "middle")
    for tick in y_ticks:
        yield _line(LEFT, y.place(tick), WIDTH - RIGHT, y.place(tick))
        yield _text(LEFT - 6, y.place(tick) + 4, f"{tick:g}", "end")
    for number, (name, series) in enumerate(panel.curves.items()):
        yield from _curve(name, series, x, y, number)


def _curve(name: str, series: Series, x: Axis, y: Axis, number: int) -> Iterator[str]:
    color = COLORS[number % len(COLORS)]
    points = [f"{x.place(at):.1f},{y.place(value):.1f}" for at, value in zip(*series, strict=True)]
    yield f'<polyline fill="none" stroke="{color}" stroke-width="1.5" points="{" ".join(points)}"/>'
    if len(points) < 50:
        for point in points:
            across, _, down = point.partition(",")
            yield f'<circle cx="{across}" cy="{down}" r="2" fill="{color}"/>'
    height = TOP + 14 + 15 * number
    yield f'<rect x="{WIDTH - RIGHT - 96}" y="{height - 8}" width="10" height="8" fill="{color}"/>'
    yield _text(WIDTH - RIGHT - 82, height, name)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {place}>{escape(text)}</text>"


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers that cover ``low`` to ``high``."""
    if not high > low:
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    rough = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(place * step, 12) for place in range(first, last + 1)]


class Curves(Drawing):
    """Diagrams side by side.

    SVG needs no other package; matplotlib (extra ``plots``) draws the other formats."""

    FORMATS = (".svg", ".png", ".pdf")

    def __init__(self, panels: Sequence[Panel]) -> None:
        super().__init__(svg(panels), " and ".join(panel.title for panel in panels))
        self.panels = panels

    @classmethod
    def check(cls, path: StrPath) -> None:
        """Refuse a name without a known format, and a format that needs a missing package."""
        if cls.suffix_of(path) != ".svg":
            _figure(cls.suffix_of(path)[1:])

    def _file(self, suffix: str) -> bytes:
        return super()._file(suffix) if suffix == ".svg" else _matplotlib(self.panels, suffix[1:])


def _figure(kind: str) -> Any:
    """matplotlib's Figure."""
    with extra("matplotlib", "plots", f"a plot as {kind.upper()}"):
        from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]
    return Figure


def _matplotlib(panels: Sequence[Panel], kind: str) -> bytes:
    figure = _figure(kind)(figsize=(5 * len(panels), 3.6), layout="constrained")
    for place, panel in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), place)
        for name, (at, values) in panel.curves.items():
            axes.plot(at, values, label=name, marker="." if len(at) < 50 else None)
        axes.set_xlabel(panel.across)
        axes.set_title(panel.title)
        axes.grid(alpha=0.3)
        axes.legend()
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=120)
    return file.getvalue()
