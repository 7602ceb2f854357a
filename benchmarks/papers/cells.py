"""Cells: numbers of a table that are computed when they are asked for; tables, parts of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparknet.training.planning.trials import Spread

Curves = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class TableCell:
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


Item = TableCell | Said | str | int


@dataclass(frozen=True)
class MarkdownTable:
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
class CurvePanel:
    title: str
    across: str
    curves: Callable[[], Curves]


@dataclass(frozen=True)
class Part:
    """A section of the page; all of it is computed when it is written."""

    name: str
    title: str
    text: Callable[[], str]
    tables: Sequence[MarkdownTable]
    panels: Sequence[CurvePanel] = field(default=())
    measures: Sequence[str] = ()
    """Files, from the project's root, whose speed the cells of a clock depend on."""

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
                {
                    "title": one.title.replace("**", "").rstrip(":"),
                    "head": list(one.head),
                    "rows": [[str(item) for item in row] for row in one.rows],
                }
                for one in self.tables
            ],
        }
