"""Pictures of what the examples found, drawn with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.patches import Rectangle
from PIL import Image

pyplot.switch_backend("Agg")

COLORS = "tab:cyan", "tab:orange", "tab:green", "tab:red", "tab:purple"


def matched(path: Path, answers: Sequence[Any], names: Sequence[str], rows: int = 6) -> None:
    """Objects that were asked for, each beside the nearest ones of the catalogue."""
    shown = answers[:: max(1, len(answers) // rows)][:rows]
    figure, axes = pyplot.subplots(len(shown), 6, figsize=(6, 1.1 * len(shown)), squeeze=False)
    for row, one in zip(axes, shown, strict=True):
        row[0].imshow(image(one.content))
        row[0].set_ylabel(names[one.label])
        for place, match in zip(row[1:], one.found, strict=False):
            place.imshow(image(match.content))
            for side in place.spines.values():
                side.set_color("tab:green" if match.label == one.label else "tab:red")
                side.set_linewidth(3)
    axes[0, 0].set_title("asked for", fontsize=8)
    axes[0, 1].set_title("nearest …", fontsize=8)
    save(figure, axes, path)


def boxed(path: Path, rows: Sequence[Any], names: Sequence[str]) -> None:
    """Pictures with the boxes that were found in them."""
    figure, axes = pyplot.subplots(2, len(rows) // 2, figsize=(7, 3.7), squeeze=False)
    for place, row in zip(axes.flat, rows, strict=False):
        place.imshow(image(row.content))
        for one in row.sure:
            color = COLORS[one.label % len(COLORS)]
            size = one.xmax - one.xmin, one.ymax - one.ymin
            corner = one.xmin, one.ymin
            place.add_patch(Rectangle(corner, *size, fill=False, color=color, linewidth=2))
            said = f"{names[one.label]} {one.score:.2f}"
            place.text(*corner, said, fontsize=7, va="bottom", backgroundcolor=color)
    save(figure, axes, path)


def image(content: bytes) -> Any:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))


def save(figure: Any, axes: Any, path: Path) -> None:
    for place in np.ravel(axes):
        place.set_xticks([])
        place.set_yticks([])
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
