"""Reproduces the papers' figures and tables on data that two cores can train.

    python -m benchmarks.papers [--only figure3 …] [--write]
    python -m benchmarks.papers --check [--share 0.1] [--seed 0] [--write]

It prints the tables, and writes build/papers/experiments.json for `sparknet report`.  Trainings are
kept in build/papers; delete it to train anew.  --write makes docs/experiments.md and its pictures;
parts that were not asked for stay as they are.
--check draws a random tenth of each part's cells again, from new trainings, and compares them with
the page within twice their ±; with --write the page says what came of it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.digits import real, source
from benchmarks.papers import bigdl, controls, dynamic, sparknet_figures, tensorspark, trainings
from benchmarks.papers.cells import Part, agree, drawn, on_page
from sparknet.summary.svg import Panel, svg

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "experiments.md"
COMMAND = "python -m benchmarks.papers"
HEAD = """# The papers' experiments

The figures and tables of SparkNet, of dynamic averaging, of BigDL and of TensorSpark on small nets,
and the strategies held against their controls. Unless a section says otherwise, the net has 32
hidden units and learns MNIST's 10,000 test digits at 14 x 14 pixels (8,500 to train on, 1,500 held
out) in batches of 4, and all workers are virtual ([planning.md](planning.md)): weights and order of
the data are those of real runs, times are simulated, in units of C, the time of a step. A cell is a
mean over {seeds} seeds ± its standard error; a seed decides the initial weights, the order of the
data and the times of steps, and all arms share it. A difference counts as seen where Student's t
gives it 95% confidence, in pairs of the same seed. Bytes are those that the transport counts for
training; validations and snapshots are not in them.

`python -m benchmarks.papers --write` makes this page, with `--only` a part of it.
`python -m benchmarks.papers --check` draws a random tenth of each part's cells again, from new
trainings, and compares them; cells that a clock measured are left out of it."""
CHECKED = "Cells drawn again"
"""How the paragraph of the last check begins."""


def makers() -> dict[str, Callable[[], Part]]:
    found = {
        "figure3": sparknet_figures.figure3,
        "figure4": lambda: sparknet_figures.figure4(sparknet_figures.SHORT),
        "figure4long": lambda: sparknet_figures.figure4(sparknet_figures.LONG),
        "figures5and6": sparknet_figures.figures5and6,
        "dynamic": dynamic.table1,
        "table2": dynamic.table2,
        "bigdl67": bigdl.throughput,
        "bigdl8": bigdl.scheduling,
        "tensorspark": tensorspark.tensorspark,
    }

    def held(task: controls.Task) -> Callable[[], Part]:
        return lambda: controls.controls(task)

    return found | {f"controls_{task.name}": held(task) for task in controls.TASKS}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=tuple(makers()), help="some of the parts")
    parser.add_argument("--write", action="store_true", help="docs/experiments.md")
    parser.add_argument("--check", action="store_true", help="draw cells again")
    parser.add_argument("--share", type=float, default=0.1, help="of the cells, for --check")
    parser.add_argument("--seed", type=int, default=0, help="of the choice, for --check")
    asked = parser.parse_args()
    print(source(), file=sys.stderr)
    if (asked.write or asked.check) and real() is None:
        parser.error("the page is of MNIST's digits: SPARKNET_MNIST says where they are")
    chosen = [make for name, make in makers().items() if not asked.only or name in asked.only]
    if asked.check:
        sys.exit(1 if check(chosen, asked.share, asked.seed, asked.write) else 0)
    parts = []
    for make in chosen:
        begun = time.monotonic()
        part = make()
        print("\n".join(text(part)), flush=True)
        print(f"{part.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
        parts.append(part)
    found = [part.json(f"{COMMAND} --only {part.name}") for part in parts]
    content = {"event": "experiment", "title": "The papers' experiments", "parts": found}
    trainings.KEPT.mkdir(parents=True, exist_ok=True)
    (trainings.KEPT / "experiments.json").write_text(json.dumps(content))
    if asked.write:
        write(parts, found)


def check(
    chosen: Sequence[Callable[[], Part]], share: float, seed: int, is_written: bool = False
) -> int:
    """The number of cells that are not as on the page."""
    page, wrong = PAGE.read_text(), 0
    places = drawn([make() for make in chosen], share, seed)
    told: dict[str, tuple[int, int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        trainings.folder = Path(folder)
        for place, cell in places:
            begun = time.monotonic()
            before, again = on_page(page, place), str(cell)
            fits = agree(before, again)
            wrong += not fits
            where = f"{place.part}, table {place.table + 1}, row {place.row + 1}"
            print(
                f"{'ok   ' if fits else 'WRONG'} {where}, column {place.column + 1}: "
                f"{before} on the page, {again} now ({time.monotonic() - begun:.0f} s)",
                flush=True,
            )
            good, of, spent = told.get(place.part, (0, 0, 0.0))
            told[place.part] = (good + fits, of + 1, spent + time.monotonic() - begun)
    print(f"{len(places)} cells drawn again, {wrong} not as on the page")
    if is_written:
        each = [
            f"{name} {good} of {of} ({spent:.0f} s)" for name, (good, of, spent) in told.items()
        ]
        PAGE.write_text(with_check(page, seed, share, ", ".join(each)))
    return wrong


def with_check(page: str, seed: int, share: float, told: str) -> str:
    """The page with what a check found, in place of what an earlier one did."""
    head, rest = page.split("\n## ", 1)
    kept = [part for part in head.strip().split("\n\n") if not part.startswith(CHECKED)]
    day, commit = date.today().isoformat(), _commit()
    line = f"{CHECKED} on {day}, commit {commit}, `--share {share:g} --seed {seed}`: as here are"
    return "\n\n".join([*kept, f"{line} {told}."]) + f"\n\n## {rest}"


def text(part: Part) -> list[str]:
    lines = ["", f"## {part.title}", "", part.text()]
    for table in part.tables:
        lines += ["", *table.lines()]
    return lines


def write(parts: Sequence[Part], found: Sequence[dict[str, Any]]) -> None:
    """The page, in which the other parts stay as they are."""
    folder = DOCS / "experiments"
    folder.mkdir(exist_ok=True)
    sections = _sections(PAGE.read_text() if PAGE.is_file() else "")
    for part, one in zip(parts, found, strict=True):
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
            (folder / f"{part.name}.svg").write_text(svg(panels))
            lines += ["", f"![{part.title}](experiments/{part.name}.svg)"]
        made = f"made on {date.today().isoformat()} from commit {_commit()}"
        sections[part.name] = "\n".join([*lines, "", f"`{one['command']}`, {made}"])
    kept = [sections[name] for name in makers() if name in sections]
    PAGE.write_text("\n\n".join([HEAD.format(seeds=trainings.SEEDS), *kept]) + "\n")


def _sections(page: str) -> dict[str, str]:
    """The parts of the page, by name."""
    parts = [f"## {section.strip()}" for section in page.split("\n## ")[1:]]
    named = ((re.findall(r"--only (\w+)`", part), part) for part in parts)
    return {names[-1]: part for names, part in named if names}


def _series(curve: Sequence[Sequence[float]]) -> Any:
    return [at for at, _ in curve], [value for _, value in curve]


def _commit() -> str:
    made = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=DOCS,
        capture_output=True,
        text=True,
        check=False,
    )
    return made.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
