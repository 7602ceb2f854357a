"""The page: one HTML file, with its style and pictures inside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from html import escape
from pathlib import Path

from sparknet.errors import FileError, SettingError
from sparknet.proto.byte_source import replacing
from sparknet.summary.report import documents, run_sections
from sparknet.summary.report.comparison import comparison, text
from sparknet.summary.report.reading import Document, ReportedRun, RunSet, read
from sparknet.summary.report.style import STYLE

StrPath = str | os.PathLike[str]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page asks nothing of the network, and runs no script."""


def report(*sources: StrPath, out: StrPath) -> str:
    """Write a page about a run (its `RunFolder` or log), about two beside each other, or about
    the JSON of a plan or an experiment.

    A folder of several runs is a set: one seed each.  Sets, and more than two runs, are compared
    by means and standard errors; returned is the comparison as text, else "".
    """
    found = [read(one) for one in sources]
    for one in found:
        if isinstance(one, Document) and len(found) > 1:
            raise SettingError(f"only runs can be compared, and {one.name} is a plan or experiment")
        for run in [] if isinstance(one, Document) else _runs(one):
            if not run.placed():
                raise FileError(run.name, "has no round and no validation to report")
    told = ""
    if len(found) > 2 or any(isinstance(one, RunSet) for one in found):
        content = comparison(_named([RunSet(one.name, _runs(one)) for one in found]))
        told = "\n".join(text(content))
        found = [Document("comparison", content)]
    with replacing(out) as draft:
        draft.write_text(html(found), encoding="utf-8")
    return told


def _runs(one: ReportedRun | RunSet | Document) -> Sequence[ReportedRun]:
    if isinstance(one, RunSet):
        return one.runs
    return [one] if isinstance(one, ReportedRun) else []


def _named(sets: list[RunSet]) -> list[RunSet]:
    """Sets with names that differ."""
    if len({one.name for one in sets}) == len(sets):
        return sets
    return [RunSet(f"{one.name} ({place})", one.runs) for place, one in enumerate(sets, 1)]


def html(found: Sequence[ReportedRun | RunSet | Document]) -> str:
    """The page as text."""
    runs = distinct([one for one in found if isinstance(one, ReportedRun)])
    if runs:
        title = " and ".join(run.name for run in runs)
        about = " · ".join(_about(run) for run in runs)
        body = run_sections.sections(runs)
    else:
        document = next(one for one in found if isinstance(one, Document))
        title = str(document.content.get("title") or document.content.get("net") or document.name)
        about, body = str(document.content["event"]), documents.sections(document.content)
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
