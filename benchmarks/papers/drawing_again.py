"""Cells of docs/experiments.md that are drawn again: which, where they stand, if they agree."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.papers.cells import Item, Part, TableCell

_NUMBER = re.compile(r"^([+-]?[\d,]+(?:\.\d+)?)(?: ± ([\d.]+))?")


@dataclass(frozen=True)
class Place:
    """Where a cell stands on the page."""

    part: str
    table: int
    row: int
    column: int


def drawn(parts: Sequence[Part], share: float, seed: int) -> list[tuple[Place, TableCell]]:
    """A random share of each part's cells that can be drawn again, at least one."""
    found = []
    for part in parts:
        places = [
            (Place(part.name, *where), item)
            for where, item in _items(part)
            if isinstance(item, TableCell) and not item.is_timed
        ]
        count = min(max(1, round(share * len(places))), len(places))
        found += random.Random(f"{seed} {part.name}").sample(places, count)
    return found


def _items(part: Part) -> Iterator[tuple[tuple[int, int, int], Item]]:
    for number, table in enumerate(part.tables):
        for row, items in enumerate(table.rows):
            for column, item in enumerate(items):
                yield (number, row, column), item


def on_page(page: str, place: Place) -> str:
    """The text of a cell in docs/experiments.md."""
    for section in page.split("\n## ")[1:]:
        if f"benchmarks.papers {place.part}`" in section:
            tables = _tables(section.splitlines())
            return tables[place.table][place.row][place.column]
    raise LookupError(f"the page has no part '{place.part}'")


def _tables(lines: Sequence[str]) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("|---"):
            found.append([])
        elif line.startswith("|") and before.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def agree(page: str, again: str) -> bool:
    """Whether two texts of a cell are within twice the larger ±, or equal."""
    one, other = _NUMBER.match(page), _NUMBER.match(again)
    if one is None or other is None:
        return page == again
    gap = abs(_float(one[1]) - _float(other[1]))
    wide = 2 * max(_float(one[2]), _float(other[2]))
    return page == again or gap <= wide


def _float(text: str | None) -> float:
    return float((text or "0").replace(",", ""))
