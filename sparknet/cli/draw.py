"""`sparknet draw`: draws a net."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli import net_file
from sparknet.cli.verb import Verb


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_net(parser)
    net_file.add_out(
        parser, "OUT", "a file named .dot, .svg, .png or .pdf; without it DOT text goes to stdout"
    )
    parser.add_argument(
        "--rankdir",
        choices=("TB", "BT", "LR", "RL"),
        default="TB",
        help="the direction from inputs to outputs, as TB for top to bottom",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="draw as pycaffe does: no shapes, and the net need not be complete",
    )


def _execute(chosen: Namespace) -> int:
    from sparknet.graph import render

    net_file.take_words(chosen)
    text = _dot(chosen)
    if chosen.out is None:
        print(text, end="")
    else:
        render(text, Path(chosen.out))
    return 0


def _dot(chosen: Namespace) -> str:
    if chosen.plain:
        from sparknet.caffe.draw import to_dot as plain

        net, phase = (
            net_file.read_text(chosen.model, chosen.trusted, dialect=chosen.dialect),
            net_file.phase_number(chosen),
        )
        return plain(net, chosen.rankdir, phase=phase)
    from sparknet.graph import to_dot

    return to_dot(net_file.graph(chosen), chosen.rankdir)


VERB = Verb(
    "draw", "Draw a net as DOT text, or as SVG, PNG or PDF with Graphviz.", _arguments, _execute
)
