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
    write(figure, path)


def write(figure: Any, path: Path) -> None:
    """A PNG of 128 colours, which is small."""
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128).save(path, optimize=True)


def masked(path: Path, rows: Sequence[Any], side: int) -> None:
    """Pictures, the true classes of their pixels, and the classes that a net told."""
    figure, axes = pyplot.subplots(3, len(rows), figsize=(7, 3.7), squeeze=False)
    for column, row in zip(axes.T, rows, strict=True):
        column[0].imshow(image(row.content))
        for place, mask in ((column[1], row.mask), (column[2], row.score.data)):
            classes = np.frombuffer(mask, np.uint8).reshape(side, side)
            place.imshow(classes, cmap="tab10", vmin=0, vmax=9, interpolation="nearest")
    for place, name in zip(axes[:, 0], ("picture", "true", "told"), strict=True):
        place.set_ylabel(name)
    save(figure, axes, path)


def confused(path: Path, pairs: Sequence[Any], names: Sequence[str]) -> None:
    """How often each class (rows) was told to be each (columns), as shares of the rows."""
    counts = np.zeros((len(names), len(names)))
    for row in pairs:
        counts[row.label, int(row.prediction)] = row["count"]
    figure, place = pyplot.subplots(figsize=(5, 4.6))
    place.imshow(counts / counts.sum(1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        if count:
            color = "white" if row == column else "black"
            place.text(column, row, f"{count:.0f}", fontsize=6, ha="center", va="center", c=color)
    place.set_xticks(range(len(names)), names, fontsize=8)
    place.set_yticks(range(len(names)), names, fontsize=8)
    place.set_xlabel("told")
    place.set_ylabel("true")
    write(figure, path)


def films(path: Path, seen: Any, future: Any, forecast: Any) -> None:
    """What was seen, what came, and what was forecast, one below the other."""
    figure, axes = pyplot.subplots(3 * len(seen), seen.shape[1], figsize=(5, 3 * len(seen)))
    for number, rows in enumerate(zip(seen, future, forecast, strict=True)):
        for offset, (name, pictures) in enumerate(
            zip(("seen", "came", "forecast"), rows, strict=True)
        ):
            line = axes[3 * number + offset]
            line[0].set_ylabel(name)
            for place, picture in zip(line, pictures, strict=True):
                place.imshow(picture, cmap="turbo", vmin=0, vmax=1)
    save(figure, axes, path)
