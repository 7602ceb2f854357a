"""The page of the papers' experiments: its parts, their text, and the files that a run leaves."""

from __future__ import annotations

import json
import re
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import digits
from benchmarks.papers import (
    PAGES,
    PARTS,
    bigdl,
    controls,
    dynamic,
    fawaz_tables,
    fewer_bytes,
    g2p,
    news,
    sparknet_figures,
    statlog,
    tensorspark,
    trainings,
)
from benchmarks.papers.cells import Part
from sparknet.graph.curves import Panel, svg

HEADS = (
    """# Published tables

Tables that others published, made again by one command each. Pages of their own have
[SparkNet's figures](experiments-sparknet.md), [three papers on Spark](experiments-spark.md) and the
[controls of the strategies](experiments-controls.md).

Run them in a clone, after `make setup`. `python` is `.venv/bin/python`, `pip` is
`.venv/bin/python -m pip`.""",
    """# SparkNet's figures

The figures of SparkNet's paper on a small net. Here, on
[the next page](experiments-spark.md) and on [that of the controls](experiments-controls.md), unless
a section says otherwise:

- The net has 32 hidden units. It learns {digits} at 14 x 14 pixels
  (8,500 to train on, 1,500 held out) in batches of 4.
- All workers are virtual ([planning.md](planning.md)): weights and order of the data are those of
  real runs. Times are simulated, in units of C, the time of a step.
- A cell is a mean over {seeds} seeds ± its standard error. A seed decides the initial weights, the
  order of the data and the times of steps, and all arms share it.
- A difference counts as seen where Student's t gives it 95% confidence, in pairs of the same seed.
- Bytes are those that the transport counts for training, without validations and snapshots.

A search in PyPI, npm and Debian gave no package with as many pictures as CIFAR-10. svhn, stl10,
cifar10, pure-cifar-10, emnist and tiny-imagenet-torch fetch theirs from elsewhere.

`python -m benchmarks.papers --write` makes all pages, with a part's name that part.
`python -m benchmarks.papers --check` draws a random tenth of each part's cells again, from new
trainings, and compares them; cells that a clock measured are left out of it.""",
    """# Dynamic averaging, BigDL and TensorSpark

The figures and tables of Alkhoury et al. (2021, dynamic averaging on Spark), of BigDL and of
TensorSpark on small nets.
What holds for all stands [above SparkNet's](experiments-sparknet.md).""",
    """# Controls of the strategies

First, what fewer bytes cost. Then each strategy is held against plain averaging that sends as many
bytes, and against plain averaging that synchronises as often.
What holds for all stands [above SparkNet's](experiments-sparknet.md).""",
)
"""What stands above the parts of each page of `PAGES`."""


def makers() -> dict[str, Callable[[], Part]]:
    """Return what computes each of `PARTS`."""
    found: dict[str, Callable[[], Part]] = {
        "fawaz": fawaz_tables.fawaz,
        "statlog": statlog.statlog,
        "news": news.news,
        "g2p": g2p.g2p,
        "figure3": sparknet_figures.figure3,
        "figure4": lambda: sparknet_figures.figure4(sparknet_figures.SHORT),
        "figure4long": lambda: sparknet_figures.figure4(sparknet_figures.LONG),
        "figures5and6": sparknet_figures.figures5and6,
        "figures5and6_of_gpu": sparknet_figures.figures5and6_of_gpu,
        "dynamic": dynamic.table1,
        "table2": dynamic.table2,
        "bigdl67": bigdl.throughput,
        "bigdl8": bigdl.scheduling,
        "tensorspark": tensorspark.tensorspark,
        "fewer_bytes": fewer_bytes.fewer_bytes,
    }

    def held(task: controls.Task) -> Callable[[], Part]:
        return lambda: controls.controls(task)

    return found | {f"controls_{task.name}": held(task) for task in controls.TASKS}


def heads() -> dict[str, str]:
    """Return what stands above the parts of each page."""
    which = "MNIST's 10,000 test digits"
    if digits.real() is None:
        which = "10,000 digits drawn from scikit-learn's"
    words = {"digits": which, "seeds": trainings.SEEDS}
    return {name: text.format(**words) for name, text in zip(PAGES, HEADS, strict=True)}


def made(chosen: Sequence[Callable[[], Part]]) -> list[Part]:
    """Computes parts, prints them, and says how long each took."""
    print(digits.source(), file=sys.stderr)
    parts = []
    for make in chosen:
        begun = time.monotonic()
        part = make()
        print("\n".join(text(part)), flush=True)
        print(f"{part.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
        parts.append(part)
    return parts


def described(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The parts as `sparknet report` reads them."""
    return [part.json(f"python -m benchmarks.papers {part.name}") for part in parts]


def write_json(parts: Sequence[Part], path: Path) -> None:
    found = described(parts)
    content = {"event": "experiment", "title": "The papers' experiments", "parts": found}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def text(part: Part) -> list[str]:
    lines = ["", f"## {part.title}", "", *part.text().split("\n")]
    for table in part.tables:
        lines += ["", *table.lines()]
    return [short for line in lines for short in wrapped(line)]


def wrapped(line: str, width: int = 110) -> list[str]:
    """Return a line of Markdown as lines of prose; tables and headings stay."""
    if len(line) <= width or line.startswith(("|", "#")):
        return [line]
    indent = "  " if line.startswith("- ") else ""
    whole = re.sub(r"`[^`]+`", lambda code: code[0].replace(" ", "\0"), line)
    lines = textwrap.wrap(
        whole, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [short.replace("\0", " ") for short in lines]


def write(parts: Sequence[Part], path: Path, above: str, how: str) -> None:
    """The page and its pictures; parts that were not computed stay as they are."""
    folder = path.parent / "experiments"
    sections = _sections(path.read_text(encoding="utf-8") if path.is_file() else "")
    for part, one in zip(parts, described(parts), strict=True):
        lines = text(part)[1:]
        panels = [
            Panel(
                panel["title"],
                {name: _series(curve) for name, curve in panel["curves"].items()},
                panel["across"],
            )
            for panel in one["panels"]
        ]
        if panels:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{part.name}.svg").write_text(svg(panels), encoding="utf-8")
            titles = "; ".join(panel.title for panel in panels)
            lines += ["", f"![{titles}]({folder.name}/{part.name}.svg)"]
        made = f"made on {date.today().isoformat()} {how}."
        sections[part.name] = "\n".join([*lines, "", f"`{one['command']}`, {made}"])
    kept = [sections[name] for name in PARTS if name in sections]
    path.write_text("\n\n".join([above, *kept]) + "\n", encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    """The parts of the page, by name."""
    parts = [f"## {section.strip()}" for section in page.split("\n## ")[1:]]
    named = ((re.findall(r"benchmarks\.papers (\w+)`", part), part) for part in parts)
    return {names[-1]: part for names, part in named if names}


def _series(curve: Sequence[Sequence[float]]) -> Any:
    return [at for at, _ in curve], [value for _, value in curve]
