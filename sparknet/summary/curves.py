"""Curves: diagrams that a notebook shows and a file keeps."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from sparknet.errors import extra
from sparknet.graph.plots import Drawing, StrPath
from sparknet.summary.svg import Panel, svg


class Curves(Drawing):
    """Diagrams side by side.

    SVG needs no other package; matplotlib (extra ``plots``) draws the other formats.
    """

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
