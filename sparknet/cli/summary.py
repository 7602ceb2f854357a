"""`sparknet summary`: a net as a table of layers, shapes and parameters."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sparknet.cli import net_file
from sparknet.cli.verb import Verb


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_net(parser)
    parser.add_argument("--splits", action="store_true", help="show the automatic Split layers")


def _execute(chosen: Namespace) -> int:
    from sparknet.graph import summary

    print(summary(net_file.graph(chosen), splits=chosen.splits))
    return 0


VERB = Verb(
    "summary", "Print a net's layers, output shapes and parameter counts.", _arguments, _execute
)
