"""`sparknet quantize`: writes a model of eight bits."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.cli import flags, image_flags, inputs, net_file
from sparknet.cli.verb import Verb, WrongUse

if TYPE_CHECKING:
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.net import Net
    from sparknet.net.rows import Data


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_model(parser)
    parser.add_argument(
        "--calibrate",
        metavar="SOURCE",
        nargs="+",
        help="what to calibrate with (default: the net's own data): images, folders of images, or "
        f"records: {inputs.HELP}",
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


def _records(words: Sequence[str], net: Net, how: Preprocessing | None) -> Data:
    """Return the photographs that `sparknet predict` would take, or the records of a data set."""
    import numpy as np

    from sparknet.loaders.image_files import SUFFIXES

    paths = inputs.image_paths(words, SUFFIXES)
    pictures = [entry.name for entry in net.inputs.values() if entry.pictures is not None]
    if paths and len(pictures) == 1:
        return {pictures[0]: np.array(paths)}
    return inputs.open_records(words, how)


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
    if not chosen.calibrate and not any(place.kind.reads_files for place in net.tested.places):
        raise WrongUse(
            f"{chosen.model} names no data that shows how large its values are",
            "give --calibrate SOURCE",
        )
    net.quantize(
        _records(chosen.calibrate, net, how) if chosen.calibrate else None,
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
