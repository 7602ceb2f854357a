"""The sections of a report about a plan or an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from sparknet.summary.report.chart import Curve, lines, table
from sparknet.summary.report.reading import Json

_Column = tuple[str, str, float]
"""What a plan calls it, what the page calls it, and what it is multiplied by for that."""

_COUNTS: tuple[_Column, ...] = (("workers", "workers", 1), ("batch", "batch", 1))
_MEASURED: tuple[_Column, ...] = (
    *_COUNTS,
    ("step", "step, ms", 1e3),
    ("sync", "synchronisation, ms", 1e3),
    ("latency", "latency, ms", 1e3),
    ("transfer", "transfer, ms", 1e3),
    ("rounds", "rounds", 1),
    ("error", "± %", 100),
)
_PREDICTED: tuple[_Column, ...] = (
    ("strategy", "strategy", 1),
    *_COUNTS,
    ("epoch", "epoch, s", 1),
    ("iteration", "iteration, ms", 1e3),
    ("share", "communication, %", 100),
    ("megabytes", "MB in 1,000 iterations", 1),
    ("error", "± %", 100),
)
_TRIED: tuple[_Column, ...] = (
    ("strategy", "strategy", 1),
    ("workers", "workers", 1),
    ("seeds", "seeds", 1),
    ("iterations", "iterations", 1),
    ("iterations_error", "± iterations", 1),
    ("seconds", "simulated time, s", 1),
    ("seconds_error", "± s", 1),
    ("accuracy", "accuracy, %", 100),
    ("reached", "reached", 1),
)


def sections(content: Json) -> Iterator[str]:
    if content["event"] == "plan":
        yield from _plan(content)
    else:
        yield from _experiment(content)


def _plan(plan: Json) -> Iterator[str]:
    yield f"<p><b>Advice:</b> {escape(str(plan['advice']))}, {plan['workers']} workers, batches of "
    yield f"{plan['batch']}, for the least {escape(str(plan['target']))}.</p>"
    yield "<ul>" + "".join(f"<li>{escape(str(one))}</li>" for one in plan["reasons"]) + "</ul>"
    rows = plan["rows"]
    sizes = sorted({row["workers"] for row in rows})
    lengths = {size: _by_length(rows, size) for size in sizes if size > 1}
    charts = [
        lines(
            title,
            [
                Curve(f"{size} workers", _of(found, name, factor), shade)
                for shade, (size, found) in enumerate(lengths.items())
            ],
            "steps in a round",
        )
        for title, name, factor in (
            ("Milliseconds of an iteration", "iteration", 1e3),
            ("Communication, % of the time", "share", 100),
        )
    ]
    yield f'<h2>Rounds of averaging</h2><div class="charts">{"".join(charts)}</div>'
    if plan["measured"]:
        yield f"<h2>Measured</h2>{_table(_MEASURED, plan['measured'])}"
    notes = "".join(f"<p>{escape(str(one))}.</p>" for one in plan.get("notes", ()))
    yield f"<h2>Predicted</h2>{_table(_PREDICTED, rows)}{notes}"
    if plan["trials"]:
        yield f"<h2>Tried in virtual time</h2>{_table(_TRIED, plan['trials'])}"


def _by_length(rows: list[Json], size: int) -> dict[int, Json]:
    """The rows of plain averaging, by the steps of a round."""
    found = {}
    for row in rows:
        name = str(row["strategy"])
        if row["workers"] == size and name.startswith("Averaging(steps=") and "," not in name:
            found[int(name.removeprefix("Averaging(steps=").rstrip(")"))] = row
    return found


def _of(found: dict[int, Json], name: str, factor: float) -> list[tuple[float, float]]:
    return [(float(length), factor * float(row[name])) for length, row in sorted(found.items())]


def _table(columns: tuple[_Column, ...], rows: list[Json]) -> str:
    cells = [[_cell(row.get(name), factor) for name, _, factor in columns] for row in rows]
    return table([head for _, head, _ in columns], cells)


def _cell(value: Any, factor: float = 1) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if factor != 1:
        value *= factor
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _experiment(content: Json) -> Iterator[str]:
    """Panels of curves and tables, each with the command that made it."""
    for part in content["parts"]:
        yield f"<h2>{escape(str(part['title']))}</h2>"
        if part.get("text"):
            yield f"<p>{escape(str(part['text']))}</p>"
        charts = [
            lines(
                str(panel["title"]),
                [
                    Curve(str(name), [(float(x), float(y)) for x, y in points], shade)
                    for shade, (name, points) in enumerate(panel["curves"].items())
                ],
                str(panel.get("across", "")),
            )
            for panel in part.get("panels", ())
        ]
        if charts:
            yield f'<div class="charts">{"".join(charts)}</div>'
        for one in part.get("tables", ()):
            rows = [[_cell(cell) for cell in row] for row in one["rows"]]
            if one.get("title"):
                yield f"<h3>{escape(str(one['title']))}</h3>"
            yield table([str(cell) for cell in one["head"]], rows)
        if part.get("command"):
            yield f"<pre>{escape(str(part['command']))}</pre>"
