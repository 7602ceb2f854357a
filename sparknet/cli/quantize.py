"""`sparknet quantize`: writes a model of eight bits."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli import flags, image_flags, net_file, sources
from sparknet.cli.verb import Verb, WrongUse


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_model(parser)
    parser.add_argument(
        "--calibrate",
        metavar="SOURCE",
        nargs="+",
        help=f"records to calibrate with (default: the net's own data): {sources.HELP}",
    )
    parser.add_argument(
        "--most-records",
        type=flags.positive,
        default=512,
        metavar="N",
        help="the most records to calibrate with (default: 512)",
    )
    parser.add_argument(
        "--method",
        choices=("auto", "mse", "max"),
        default="auto",
        help="how ranges are chosen: max keeps the largest values, mse clips rare ones where that "
        "makes the squared error smaller, auto (the default) takes what the outputs lose least by",
    )
    parser.add_argument("--exclude", metavar="LAYER[,LAYER]", help="layers that stay in float32")
    parser.add_argument(
        "--most-loss",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="the largest error of a layer in eight bits, as a share of the norm of its values; a "
        "layer with a larger one stays in float32 (default: 0.1)",
    )
    flags.add_old(parser, "--records", "--most-records", type=flags.positive)
    net_file.add_out(parser, "OUT.caffemodel", "the model to write")
    image_flags.add(parser)


def _execute(chosen: Namespace) -> int:
    # --calibrate takes all words up to the next flag, OUT too.
    net_file.take_words(chosen)
    if chosen.out is None and chosen.calibrate and len(chosen.calibrate) > 1:
        chosen.out = chosen.calibrate.pop()
    if chosen.out is None:
        raise WrongUse("name the model to write: OUT.caffemodel")
    if not chosen.out.endswith(".caffemodel"):
        raise WrongUse(f"OUT ends in .caffemodel; it is {chosen.out}")
    chosen.precision = "float32"
    net = net_file.fed_net(chosen)
    how = image_flags.preprocessing(chosen)
    if not chosen.calibrate and not any(place.kind.reads for place in net.tested.places):
        raise WrongUse(
            f"{chosen.model} names no data that shows how large its values are",
            "give --calibrate SOURCE",
        )
    net.quantize(
        sources.open_records(chosen.calibrate, how) if chosen.calibrate else None,
        method=chosen.method,
        exclude=chosen.exclude.split(",") if chosen.exclude else (),
        most_records=chosen.most_records,
        most_loss=chosen.most_loss,
    )
    net.save(chosen.out)
    print(f"{chosen.out}: {Path(chosen.out).stat().st_size:,} bytes", file=sys.stderr)
    return 0


VERB = Verb(
    "quantize",
    "Write a model whose weights have eight bits, for --precision int8.",
    _arguments,
    _execute,
)
