"""Reproduces the papers' figures and tables on data that two cores can train.

    python -m benchmarks.papers [--net mlp|lenet] [--only figure3 …] [--write]

It prints the tables, and writes build/papers/experiments.json for `sparknet report`.  Trainings are
kept in build/papers; delete it to train anew.  --write makes docs/experiments.md and its pictures.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.digits import source
from benchmarks.papers.curves import BATCH, KEPT, SETTINGS
from benchmarks.papers.experiments import Part, all_parts
from sparknet.summary.plot import Panel
from sparknet.summary.svg import svg

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMMAND = "python -m benchmarks.papers"
HEAD = """# The papers' experiments

The figures and tables of SparkNet, of dynamic averaging, of BigDL and of TensorSpark, on
handwritten digits (8,500 to train on, 1,500 to test on): net `{net}`, batches of {batch},
{accuracy:.0%} accuracy where one is waited for. All workers are virtual
([planning.md](planning.md)):
weights and order of the data are those of real runs. Times are in units of C, the time of a step,
or follow from what was measured on one machine.

`python -m benchmarks.papers --net {net} --write` makes this page; it took {minutes:.0f} minutes,
with other programs on the same two cores."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--net", choices=tuple(SETTINGS), default="mlp")
    parser.add_argument("--only", nargs="*", help="names, such as figure3 or dynamic")
    parser.add_argument("--write", action="store_true", help="docs/experiments.md")
    asked = parser.parse_args()
    setting, begun, parts = SETTINGS[asked.net], time.monotonic(), []
    print(source())
    for name, make in all_parts(setting).items():
        if asked.only and name not in asked.only:
            continue
        part = make()
        part["command"] = f"{COMMAND} --net {asked.net} --only {part['name']}"
        parts.append(part)
        print("\n".join(text(part)), flush=True)
    took = time.monotonic() - begun
    print(f"{took:.0f} s")
    content = {"event": "experiment", "title": "The papers' experiments", "parts": parts}
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / "experiments.json").write_text(json.dumps(content))
    if asked.write:
        write(parts, asked.net, took)


def text(part: Part) -> Iterator[str]:
    yield from ("", f"## {part['title']}", "", part["text"], "")
    for table in part.get("tables", ()):
        yield from rows(table["head"], table["rows"])


def rows(head: Sequence[Any], lines: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(map(str, head))} |"
    yield "|" + "---|" * len(head)
    for line in lines:
        yield f"| {' | '.join(map(str, line))} |"


def write(parts: Sequence[Part], net: str, took: float) -> None:
    folder = DOCS / "experiments"
    folder.mkdir(exist_ok=True)
    setting = SETTINGS[net]
    lines = [HEAD.format(net=net, batch=BATCH, accuracy=setting.accuracy, minutes=took / 60)]
    for part in parts:
        lines += list(text(part))
        panels = [
            Panel(
                one["title"],
                {name: _series(curve) for name, curve in one["curves"].items()},
                one["across"],
            )
            for one in part.get("panels", ())
        ]
        if panels:
            (folder / f"{part['name']}.svg").write_text(svg(panels))
            lines += ["", f"![{part['title']}](experiments/{part['name']}.svg)"]
        lines += ["", f"`{part['command']}`"]
    (DOCS / "experiments.md").write_text("\n".join(lines) + "\n")


def _series(curve: Sequence[Sequence[float]]) -> Any:
    return [at for at, _ in curve], [value for _, value in curve]


if __name__ == "__main__":
    main()
