"""`sparknet report`: a run, or two beside each other, as one HTML page."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli.verb import Verb


def _arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUNDIR", help="of --run-folder, a log of events, or a plan's JSON")
    add("other", metavar="RUNDIR", nargs="?", help="a run to show beside it")
    add("--out", metavar="FILE", help="the page; else report.html in RUNDIR, or beside the file")


def _execute(chosen: Namespace) -> int:
    from sparknet.summary.report import report

    place = Path(chosen.run)
    usual = place / "report.html" if place.is_dir() else place.with_suffix(".html")
    out = Path(chosen.out) if chosen.out else usual
    report(chosen.run, chosen.other, out=out)
    print(f"sparknet report: wrote {out}", file=sys.stderr)
    return 0


VERB = Verb(
    "report", "Write a page about a run, two runs, a plan or an experiment.", _arguments, _execute
)
