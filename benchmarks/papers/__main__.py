"""Writes and checks the papers' figures and tables: docs/experiments.md and its neighbours.

    python -m benchmarks.papers [figure3 …] [--write]
    python -m benchmarks.papers --check [--share 0.1] [--seed 0]

It prints the tables, and writes build/papers/experiments.json for `sparknet report`.  Trainings are
kept in build/papers; delete it to train anew.  --write makes the pages of docs/ and their pictures;
parts that were not asked for stay as they are.
--check draws a random tenth of each part's cells again, from new trainings, and compares them with
the pages within twice their ±.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.digits import ROOT, real, source
from benchmarks.papers import PAGES, PARTS, page, trainings
from benchmarks.papers.cells import Part
from benchmarks.papers.drawing_again import agree, drawn, on_page

DOCS = ROOT / "docs"
KEPT = ROOT / "build" / "papers"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("only", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; or all")
    parser.add_argument("--write", action="store_true", help="the pages of docs/")
    parser.add_argument("--check", action="store_true", help="draw cells again")
    parser.add_argument("--share", type=float, default=0.1, help="of the cells, for --check")
    parser.add_argument("--seed", type=int, default=0, help="of the choice, for --check")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.only) - set(PARTS)):
        parser.error(f"there is no part '{unknown[0]}': there are {', '.join(PARTS)}")
    if (asked.write or asked.check) and real() is None:
        parser.error("the page is of MNIST's digits: SPARKNET_MNIST says where they are")
    trainings.folder = KEPT
    makers = page.makers()
    chosen = [makers[name] for name in PARTS if not asked.only or name in asked.only]
    if asked.check:
        sys.exit(1 if check(chosen, asked.share, asked.seed) else 0)
    parts = page.made(chosen)
    page.write_json(parts, KEPT / "experiments.json")
    if asked.write:
        for name, above in page.heads().items():
            if chosen_parts := [part for part in parts if part.name in PAGES[name]]:
                page.write(chosen_parts, DOCS / name, above, f"from commit {_commit()}")


def check(chosen: Sequence[Callable[[], Part]], share: float, seed: int) -> int:
    """Return the number of cells that are not as on the page."""
    pages = [path for name in PAGES if (path := DOCS / name).is_file()]
    written, wrong = "\n\n".join(path.read_text() for path in pages), 0
    print(source(), file=sys.stderr)
    places = drawn([make() for make in chosen], share, seed)
    with tempfile.TemporaryDirectory() as folder:
        trainings.folder = Path(folder)
        for place, cell in places:
            begun = time.monotonic()
            before, again = on_page(written, place), str(cell)
            fits = agree(before, again)
            wrong += not fits
            where = f"{place.part}, table {place.table + 1}, row {place.row + 1}"
            print(
                f"{'ok   ' if fits else 'WRONG'} {where}, column {place.column + 1}: "
                f"{before} on the page, {again} now ({time.monotonic() - begun:.0f} s)",
                flush=True,
            )
    print(f"{len(places)} cells drawn again, {wrong} not as on the page")
    for line in older(written, [make() for make in chosen]):
        print(f"OLD   {line}")
        wrong += 1
    return wrong


def older(written: str, parts: Sequence[Part]) -> list[str]:
    """Return a line for each part of the page that is older than the code whose speed it tells."""
    lines = []
    for part in parts:
        stamp = re.search(
            rf"benchmarks\.papers {part.name}`, made on .* from commit (\w+)", written
        )
        if not part.measures or stamp is None:
            continue
        since = _git("log", "--format=%h", f"{stamp[1]}..HEAD", "--", *part.measures).split()
        if since:
            files = ", ".join(part.measures)
            lines.append(
                f"{part.name}: made from {stamp[1]}; {files} changed {len(since)} times since"
            )
    return lines


def _commit() -> str:
    return _git("rev-parse", "--short", "HEAD").strip() or "unknown"


def _git(*words: str) -> str:
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    main()
