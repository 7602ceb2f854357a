"""The command `sparknet`: data to stdout, messages to stderr.

Exit status: 0 success, 1 an error that is reported, 2 wrong use, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import partial
from io import TextIOWrapper

from sparknet import __version__
from sparknet.cli import (
    completion,
    convert,
    doctor,
    draw,
    features,
    models,
    predict,
    run,
    show,
    test,
    time,
    train,
    upgrade,
)
from sparknet.cli.hints import hint
from sparknet.cli.parser import Parser
from sparknet.cli.verb import Verb, WrongUse
from sparknet.errors import SparkNetError

__all__ = ["VERBS", "main"]

VERBS: tuple[Verb, ...] = (
    train.VERB,
    test.VERB,
    predict.VERB,
    features.VERB,
    time.VERB,
    show.VERB,
    draw.VERB,
    models.VERB,
    convert.VERB,
    upgrade.VERB,
    run.VERB,
    doctor.VERB,
    completion.VERB,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status."""
    parser = command()
    chosen = parser.parse_args(arguments)
    verb: Verb | None = chosen.verb
    if verb is None:
        parser.print_help(sys.stderr)
        return 2
    return verb.execute(chosen) if verb.transparent else _reporting(verb, chosen)


def command() -> ArgumentParser:
    """The command's arguments, those of all verbs included."""
    parser = Parser("sparknet", description="Train and run Caffe networks on Apache Spark.")
    parser.add_argument("--version", action="version", version=f"sparknet {__version__}")
    parser.set_defaults(verb=None)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB")
    for verb in VERBS:
        sub = verbs.add_parser(verb.name, help=verb.help, description=verb.help)
        verb.arguments(sub)
        sub.set_defaults(verb=verb)
    return parser


def _reporting(verb: Verb, chosen: object) -> int:
    if isinstance(sys.stdout, TextIOWrapper):
        # File names that are no text leave as they came.
        sys.stdout.reconfigure(errors="surrogateescape")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_warned, verb)
            status = verb.execute(chosen)  # type: ignore[arg-type]
        sys.stdout.flush()
    except SparkNetError as error:
        return _failed(verb, error, hint(error), 1)
    except WrongUse as error:
        return _failed(verb, error, error.hint, 2)
    except BrokenPipeError:
        # The reader of stdout has gone; nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as interrupt:
        return _failed(verb, interrupt, None, 130) if interrupt.args else 130
    return status


def _warned(verb: Verb, message: Warning | str, *_: object) -> None:
    print(f"sparknet {verb.name}: warning: {message}", file=sys.stderr)


def _failed(verb: Verb, error: BaseException, advice: str | None, status: int) -> int:
    print(f"sparknet {verb.name}: {error}", file=sys.stderr)
    if advice:
        print(f"hint: {advice}", file=sys.stderr)
    return status
