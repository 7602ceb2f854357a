"""The page of the papers' experiments: its parts, their text, and the files that a run leaves."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import digits
from benchmarks.papers import (
    PARTS,
    bigdl,
    controls,
    dynamic,
    sparknet_figures,
    tensorspark,
    trainings,
)
from benchmarks.papers.cells import Part
from sparknet.graph.curves import Panel, svg

HEAD = """# The papers' experiments

The figures and tables of SparkNet, of Alkhoury et al. (2021, dynamic averaging on Spark), of BigDL
and of TensorSpark on small nets,
and the strategies held against their controls. Unless a section says otherwise, the net has 32
hidden units and learns {digits} at 14 x 14 pixels (8,500 to train on, 1,500 held
out) in batches of 4, and all workers are virtual{planning}: weights and order of
the data are those of real runs, times are simulated, in units of C, the time of a step. A cell is a
mean over {seeds} seeds ± its standard error; a seed decides the initial weights, the order of the
data and the times of steps, and all arms share it. A difference counts as seen where Student's t
gives it 95% confidence, in pairs of the same seed. Bytes are those that the transport counts for
training; validations and snapshots are not in them."""


def makers() -> dict[str, Callable[[], Part]]:
    """What computes each of `PARTS`."""
    found: dict[str, Callable[[], Part]] = {
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
    }

    def held(task: controls.Task) -> Callable[[], Part]:
        return lambda: controls.controls(task)

    return found | {f"controls_{task.name}": held(task) for task in controls.TASKS}


def head(planning: str = "") -> str:
    """What stands above all parts."""
    which = "MNIST's 10,000 test digits"
    if digits.real() is None:
        which = "10,000 digits drawn from scikit-learn's"
    return HEAD.format(digits=which, planning=planning, seeds=trainings.SEEDS)


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
    lines = ["", f"## {part.title}", "", part.text()]
    for table in part.tables:
        lines += ["", *table.lines()]
    return lines


def write(parts: Sequence[Part], path: Path, above: str, how: str) -> None:
    """The page and its pictures; parts that were not computed stay as they are."""
    folder = path.parent / path.stem
    folder.mkdir(parents=True, exist_ok=True)
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
            (folder / f"{part.name}.svg").write_text(svg(panels), encoding="utf-8")
            lines += ["", f"![{part.title}]({path.stem}/{part.name}.svg)"]
        made = f"made on {date.today().isoformat()} {how}"
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
