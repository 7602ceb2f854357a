"""The command `sparknet`; exits with 0, 1 (an error), 2 (wrong use) or 130 (interrupted)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from sparknet import __version__
from sparknet.cli import (
    alias,
    caffe_flags,
    census,
    completion,
    convert,
    device_query,
    doctor,
    draw,
    export,
    features,
    models,
    plan,
    predict,
    quantize,
    report,
    run,
    show,
    test,
    time,
    train,
    upgrade,
)
from sparknet.cli.verb import Parser, Verb, WrongUse, run_reported

__all__ = ["VERBS", "main"]

VERBS: tuple[Verb, ...] = (
    train.VERB,
    plan.VERB,
    report.VERB,
    test.VERB,
    predict.VERB,
    features.VERB,
    time.VERB,
    show.VERB,
    draw.VERB,
    models.VERB,
    census.VERB,
    convert.VERB,
    export.VERB,
    quantize.VERB,
    upgrade.VERB,
    run.VERB,
    alias.VERB,
    doctor.VERB,
    device_query.VERB,
    completion.VERB,
)
TRANSPARENT = frozenset(verb.name for verb in VERBS if verb.transparent)


def main(arguments: Sequence[str] | None = None, program: str = "sparknet") -> int:
    """Run one verb; returns the exit status.  `caffe` is the same program under another name."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        arranged = convert.with_kind(caffe_flags.arrange(words, TRANSPARENT))
        options = command(program, arranged).parse_args(arranged)
    except WrongUse as error:
        command(program, []).error(str(error))
    verb: Verb | None = options.verb
    if verb is None:
        command(program, []).print_help(sys.stderr)
        return 2
    if verb.transparent:
        return verb.execute(options)
    caffe_flags.begin_file(program)
    return run_reported(f"{program} {verb.name}", lambda: verb.execute(options))


def command(program: str = "sparknet", words: Sequence[str] | None = None) -> ArgumentParser:
    """Return the command's parser, with the arguments of all verbs, or of those among ``words``."""
    parser = Parser(program, description="Train and run Caffe networks on Apache Spark.")
    parser.add_argument("--version", action="version", version=f"sparknet {__version__}")
    parser.set_defaults(verb=None, program=program, command=command)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB")
    for verb in VERBS:
        sub = verbs.add_parser(verb.name, help=verb.help, description=verb.help)
        if words is None or verb.name in words:
            verb.add_arguments(sub, words)
        sub.set_defaults(verb=verb)
    return parser
