"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def cell(text: str, widest: int) -> str:
    """Return one line of printable text, cut where it would spoil the table."""
    printable = "".join(char if char.isprintable() else "?" for char in text[: widest + 1])
    return printable if len(printable) <= widest else printable[: widest - 1] + "…"


def aligned(rows: Sequence[Sequence[str]], words: int) -> Iterator[str]:
    """Columns of one width each, the first `words` of them to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(
            text.ljust(width) if column < words else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield line.rstrip()
