"""The page: one HTML file, with its style and pictures inside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, SettingError
from sparknet.report import run_sections
from sparknet.report.charts import Curve, lines, table
from sparknet.report.runs import Document, Json, ReportedRun, RunSet, comparison, read, text

STYLE = (
    """
:root{--bg:#fff;--panel:#f7f7f5;--ink:#1d2126;--soft:#667;--rule:#e2e2de;--mark:#fff3cd;
--c0:#2f6fb0;--c1:#d9731a;--c2:#3a8f4d;--c3:#b8433f;--c4:#7a5bb0;--c5:#8a6a4f;--c6:#c2619a;--c7:#5d7378;
--s0:#e0a526;--s1:#2f6fb0;--s2:#b9bec6;--s3:#7a5bb0}
@media(prefers-color-scheme:dark){:root{--bg:#16181b;--panel:#1f2226;--ink:#e8e8e4;--soft:#9aa0a8;
--rule:#33373d;--mark:#4a3f1a;--c0:#6ba6e0;--c1:#f09a4e;--c2:#6fbf80;--c3:#e0807c;--c4:#aa8fe0;
--c5:#bfa081;--c6:#e39ac5;--c7:#93aab0;--s0:#e0b24d;--s1:#6ba6e0;--s2:#5b6169;--s3:#aa8fe0}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:16px}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.1rem;margin:1.6em 0 .5em}
.sub,figcaption,.legend,.tile small{color:var(--soft)}
.tiles,.charts{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(min(100%,150px),1fr))}
.charts{grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr))}
.tile,figure{background:var(--panel);border-radius:8px;padding:10px 12px;margin:0;min-width:0}
.tile b{display:block;font-size:1.2rem;overflow-wrap:anywhere}
.tile small{display:block}
.tile .of{display:block;font-size:.8rem;font-weight:400;color:var(--soft)}
.of i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
figcaption{font-weight:600}
svg.chart{width:100%;height:auto;display:block}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
.grid{stroke:var(--rule)}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}
.legend{margin:.2em 0;display:flex;flex-wrap:wrap;gap:2px 14px;font-size:.85rem}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.legend i.open{
background-image:repeating-linear-gradient(90deg,transparent 0 3px,var(--panel) 3px 5px)}
h3{font-size:.95rem;margin:1em 0 .4em}
.scroll{overflow-x:auto;max-width:100%}.charts+.scroll,.scroll+.scroll{margin-top:1em}.scroll.net{max-height:70vh;overflow:auto;background:var(--panel);border-radius:8px}
svg.net{display:block;margin:0 auto}
.layer rect{fill:var(--bg);stroke:var(--soft)}.learns rect{stroke:var(--c0);stroke-width:2}
.source rect{stroke:var(--c2);stroke-width:2}.layer text{fill:var(--ink);font-size:11px}
.layer .kind{fill:var(--soft);font-size:9.5px}.edge{fill:none;stroke:var(--soft)}
table{border-collapse:collapse;font-size:.88rem;min-width:100%}
th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid var(--rule);white-space:nowrap}
td:last-child{white-space:normal;overflow-wrap:anywhere;min-width:8em}
td{font-variant-numeric:tabular-nums}tr.differs td{background:var(--mark)}
.confusion{min-width:0}.confusion td,.confusion th{padding:3px 9px;text-align:center}
.confusion td:last-child{min-width:0}
.confusion td[style]{background:color-mix(in srgb,var(--c0) calc(var(--share)*.7),transparent)}
pre{overflow-x:auto;background:var(--panel);padding:10px;border-radius:8px;font-size:.82rem}
details{margin:.6em 0}summary{cursor:pointer}
.axes input{position:absolute;opacity:0}
.axes label{display:inline-block;padding:2px 12px;border:1px solid var(--rule);
border-radius:14px;margin:0 4px 8px 0;cursor:pointer}
.axes .on{display:none}
.axes input:focus-visible+label{outline:2px solid var(--c0)}
"""
    + "".join(
        f".c{n}{{stroke:var(--c{n})}}.f{n}{{fill:var(--c{n});background:var(--c{n})}}"
        for n in range(8)
    )
    + "".join(f".s{n}{{fill:var(--s{n});background:var(--s{n})}}" for n in range(4))
    + "".join(
        f"#by-{axis}:checked~.on.{axis}{{display:grid}}"
        f"#by-{axis}:checked+label{{background:var(--ink);color:var(--bg)}}"
        for axis in ("samples", "time", "epochs")
    )
)


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


def document_sections(content: Json) -> Iterator[str]:
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
                Curve(f"{size} workers", _of(rounds, name, factor), shade)
                for shade, (size, rounds) in enumerate(lengths.items())
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
    """Return the rows of plain averaging, by the steps of a round."""
    lengths = {}
    for row in rows:
        name = str(row["strategy"])
        if row["workers"] == size and name.startswith("Averaging(steps=") and "," not in name:
            lengths[int(name.removeprefix("Averaging(steps=").rstrip(")"))] = row
    return lengths


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


StrPath = str | os.PathLike[str]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page asks nothing of the network, and runs no script."""


def report(*sources: StrPath, out: StrPath) -> str:
    """Write a page about a run (its `RunFolder` or log), about two beside each other, or about
    the JSON of a plan or an experiment.

    A folder of several runs is a set: one seed each.  Sets, and more than two runs, are compared
    by means and standard errors; returned is the comparison as text, else "".
    """
    runs = [read(one) for one in sources]
    for one in runs:
        if isinstance(one, Document) and len(runs) > 1:
            raise SettingError(f"only runs can be compared, and {one.name} is a plan or experiment")
        for run in [] if isinstance(one, Document) else _runs(one):
            if not run.points():
                raise FileError(run.name, "has no round and no validation to report")
    summary = ""
    if len(runs) > 2 or any(isinstance(one, RunSet) for one in runs):
        content = comparison(_with_names([RunSet(one.name, _runs(one)) for one in runs]))
        summary = "\n".join(text(content))
        runs = [Document("comparison", content)]
    with atomic_file(out) as draft:
        draft.write_text(html(runs), encoding="utf-8")
    return summary


def _runs(one: ReportedRun | RunSet | Document) -> Sequence[ReportedRun]:
    if isinstance(one, RunSet):
        return one.runs
    return [one] if isinstance(one, ReportedRun) else []


def _with_names(sets: list[RunSet]) -> list[RunSet]:
    """Sets with names that differ."""
    if len({one.name for one in sets}) == len(sets):
        return sets
    return [RunSet(f"{one.name} ({place})", one.runs) for place, one in enumerate(sets, 1)]


def html(found: Sequence[ReportedRun | RunSet | Document]) -> str:
    """Return the page as text."""
    runs = distinct([one for one in found if isinstance(one, ReportedRun)])
    if runs:
        title = " and ".join(run.name for run in runs)
        about = " · ".join(_about(run) for run in runs)
        body = run_sections.sections(runs)
    else:
        document = next(one for one in found if isinstance(one, Document))
        title = str(document.content.get("title") or document.content.get("net") or document.name)
        about, body = str(document.content["event"]), document_sections(document.content)
    return page(title, about, body)


def distinct(runs: list[ReportedRun]) -> list[ReportedRun]:
    """Runs with names that differ."""
    if len({run.name for run in runs}) == len(runs):
        return runs
    return [
        ReportedRun(f"{run.name} ({place})", run.events, run.about)
        for place, run in enumerate(runs, 1)
    ]


def page(title: str, about: str, sections: Iterable[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f'<body><main><h1>{escape(title)}</h1><p class="sub">{escape(about)}</p>\n'
        + "\n".join(sections)
        + "\n</main></body></html>\n"
    )


def _about(run: ReportedRun) -> str:
    start = run.start
    words = [str(start["net"])] if start.get("net") else []
    if start.get("workers"):
        many = "worker" if start["workers"] == 1 else "workers"
        words.append(f"{start['workers']} {many}, {start.get('strategy', '')}")
    began = start.get("time") or run.about.get("begun")
    if isinstance(began, (int, float)):
        words.append(datetime.fromtimestamp(began, timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))
    at = [str(one["iteration"]) for one in run.of_kind("start") if one.get("resumed")]
    if at:
        words.append(f"resumed at iteration {', '.join(at)}")
    return ", ".join(words) or Path(run.name).name
