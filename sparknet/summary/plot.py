"""plot: loss and accuracy over the iterations, as an image."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sparknet.errors import FileError, extra
from sparknet.proto.byte_source import replacing
from sparknet.summary.events import Event
from sparknet.summary.history import History
from sparknet.summary.svg import Panel, svg

FORMATS = (".svg", ".png", ".pdf")


def plot(source: History | Iterable[Event] | str | os.PathLike[str], out: str | Path) -> None:
    """Draw a history, or its JSON lines, to a file named .svg, .png or .pdf.

    SVG needs no other package; matplotlib (extra ``plots``) draws the other formats.
    """
    check_format(out)
    drawn = _history(source).panels()
    if not drawn:
        raise FileError(out, "there is nothing to plot: no round and no validation was recorded")
    draw(drawn, out)


def draw(drawn: list[Panel], out: str | Path) -> None:
    """Draw diagrams to a file named .svg, .png or .pdf."""
    check_format(out)
    with replacing(out) as draft:
        if Path(out).suffix == ".svg":
            draft.write_text(svg(drawn), encoding="utf-8")
        else:
            _matplotlib(drawn, draft, Path(out).suffix[1:])


def check_format(out: str | Path) -> None:
    """Refuse a name without a known format, and a format that needs a missing package."""
    suffix = Path(out).suffix
    if suffix not in FORMATS:
        raise FileError(out, f"a plot's name ends in {', '.join(FORMATS)}")
    if suffix != ".svg":
        _figure(suffix[1:])


def _figure(kind: str) -> Any:
    """matplotlib's Figure."""
    with extra("matplotlib", "plots", f"a plot as {kind.upper()}"):
        from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]
    return Figure


def _history(source: Any) -> History:
    if isinstance(source, History):
        return source
    return History.read(source) if isinstance(source, (str, os.PathLike)) else History(source)


def _matplotlib(panels: list[Panel], file: Path, kind: str) -> None:
    figure = _figure(kind)(figsize=(5 * len(panels), 3.6), layout="constrained")
    for place, panel in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), place)
        for name, (at, values) in panel.curves.items():
            axes.plot(at, values, label=name, marker="." if len(at) < 50 else None)
        axes.set_xlabel(panel.across)
        axes.set_title(panel.title)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(file, format=kind, dpi=120)
