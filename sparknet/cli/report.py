"""`sparknet report`: a run, two beside each other, or sets of runs compared, as one HTML page."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli.verb import Verb


def _arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "runs",
        metavar="RUNDIR",
        nargs="+",
        help="of --run-folder, a folder of several of them (a set of seeds), a log of events, or a "
        "plan's JSON; two runs are shown beside each other, sets and more runs compared",
    )
    add("--out", metavar="FILE", help="the page; else report.html in RUNDIR, or beside the file")


def _execute(chosen: Namespace) -> int:
    from sparknet.report.page import report

    place = Path(chosen.runs[0])
    usual = place / "report.html" if place.is_dir() else place.with_suffix(".html")
    out = Path(chosen.out) if chosen.out else usual
    if text := report(*chosen.runs, out=out):
        print(text)
    print(f"sparknet report: wrote {out}", file=sys.stderr)
    return 0


VERB = Verb(
    "report",
    "Write a page about a run, two runs, sets of runs, a plan or an experiment.",
    _arguments,
    _execute,
)
