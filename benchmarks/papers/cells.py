"""Cells: numbers of a table that are drawn when they are asked for; parts, their text and check."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparknet.summary.spread import Spread

Curves = dict[str, list[tuple[float, float]]]

_NUMBER = re.compile(r"^([+-]?[\d,]+(?:\.\d+)?)(?: ± ([\d.]+))?")


@dataclass(frozen=True)
class Cell:
    """A mean over seeds and its standard error."""

    value: Callable[[], Spread]
    scale: float = 1.0
    digits: int = 2
    unit: str = ""
    signed: bool = False
    is_timed: bool = False
    """Measured by the clock, so that it is another on another day: not checked."""

    def __str__(self) -> str:
        text = self.value().text(self.scale, self.digits, self.unit)
        return f"+{text}" if self.signed and not text.startswith("-") else text


@dataclass(frozen=True)
class Said:
    """Words that follow from numbers."""

    words: Callable[[], str]

    def __str__(self) -> str:
        return self.words()


Item = Cell | Said | str | int


@dataclass(frozen=True)
class Table:
    head: Sequence[str]
    rows: Sequence[Sequence[Item]]
    title: str = ""

    def lines(self) -> Iterator[str]:
        if self.title:
            yield from (self.title, "")
        yield f"| {' | '.join(self.head)} |"
        yield "|" + "---|" * len(self.head)
        for row in self.rows:
            yield f"| {' | '.join(str(one) for one in row)} |"


@dataclass(frozen=True)
class Panel:
    title: str
    across: str
    curves: Callable[[], Curves]


@dataclass(frozen=True)
class Part:
    """A section of the page; all of it is computed when it is written."""

    name: str
    title: str
    text: Callable[[], str]
    tables: Sequence[Table]
    panels: Sequence[Panel] = field(default=())

    def json(self, command: str) -> dict[str, Any]:
        """For `sparknet report`."""
        return {
            "name": self.name,
            "title": self.title,
            "text": self.text(),
            "command": command,
            "panels": [
                {"title": one.title, "across": one.across, "curves": one.curves()}
                for one in self.panels
            ],
            "tables": [
                {"head": list(one.head), "rows": [[str(item) for item in row] for row in one.rows]}
                for one in self.tables
            ],
        }


@dataclass(frozen=True)
class Place:
    """Where a cell stands on the page."""

    part: str
    table: int
    row: int
    column: int


def drawn(parts: Sequence[Part], share: float, seed: int) -> list[tuple[Place, Cell]]:
    """A random share of each part's cells that can be drawn again, at least one."""
    found = []
    for part in parts:
        places = [
            (Place(part.name, *where), item)
            for where, item in _items(part)
            if isinstance(item, Cell) and not item.is_timed
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
        if f"--only {place.part}`" in section:
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
