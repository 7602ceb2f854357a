"""`sparknet papers`: the figures and tables of four papers, computed again."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli.verb import Verb


def _arguments(parser: ArgumentParser) -> None:
    from sparknet.papers import PARTS

    told = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    parser.add_argument(
        "--only",
        metavar="PART",
        nargs="+",
        choices=tuple(PARTS),
        help=f"some of the parts; all without. {told}",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        default="papers",
        help="where experiments.md, its pictures, experiments.json and the trainings go; what "
        "lies there is not made again (default: papers)",
    )


def _execute(chosen: Namespace) -> int:
    import sparknet
    from sparknet.errors import FileError
    from sparknet.papers import PARTS, page, trainings

    out = Path(chosen.out)
    try:
        (out / "trainings").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(out, f"is no folder for the papers: {error.strerror or error}") from error
    trainings.folder = out / "trainings"
    makers = page.makers()
    parts = page.made([makers[name] for name in PARTS if name in (chosen.only or PARTS)])
    page.write_json(parts, out / "experiments.json")
    page.write(parts, out / "experiments.md", page.head(), f"with sparknet {sparknet.__version__}")
    told = f"wrote {out / 'experiments.md'} and {out / 'experiments.json'}"
    print(f"sparknet papers: {told}, which sparknet report shows", file=sys.stderr)
    return 0


VERB = Verb(
    "papers",
    "Compute the figures and tables of four papers again, in virtual time, from trainings.",
    _arguments,
    _execute,
)
