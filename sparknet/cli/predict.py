"""`sparknet predict`: runs a net on images or records."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, TextIO

from sparknet.cli import answers, flags, inputs, net_file, predict_spark
from sparknet.cli.hints import left_out
from sparknet.cli.parquet_files import write_answers
from sparknet.cli.verb import Verb, WrongUse
from sparknet.loaders.image_files import read_labels

if TYPE_CHECKING:
    from sparknet.net import Entry, Net


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_weighed(parser)
    inputs.add(parser)
    flags.add_outputs(parser, "blobs to print; else the net's outputs")
    parser.add_argument(
        "--top",
        type=flags.count,
        default=5,
        metavar="K",
        help="print the K best classes (default: 5), or with 0 all values",
    )
    parser.add_argument(
        "--labels", metavar="FILE", help="a file with the names of the classes, one per line"
    )
    parser.add_argument(
        "--format",
        choices=tuple(answers.FORMATS),
        default="text",
        help="the form of the answers (default: text)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="the file to write, which may be a .parquet (default: stdout)"
    )
    flags.add_gpu(parser)
    predict_spark.add(parser)
    flags.add_json(parser, "the same as --format json: a line of JSON for each input")


def _execute(chosen: Namespace) -> int:
    net_file.take_words(chosen)
    wanted = chosen.outputs.split(",") if chosen.outputs else None
    if predict_spark.is_wanted(chosen):
        entry = data_entry(net_file.fed_net(chosen))
        top = chosen.top or None
        return predict_spark.write(chosen, "predict", entry, wanted, top=top, labels=chosen.labels)
    if not chosen.inputs:
        raise WrongUse("give INPUT: image files, or a data set")
    net = net_file.fed_net(chosen)
    labels = read_labels(chosen.labels) if chosen.labels else None
    known = net.labels
    source = inputs.Inputs(chosen, data_entry(net), net)
    shape = answers.FORMATS["json" if chosen.json else chosen.format]
    if chosen.out and chosen.out.endswith(".parquet"):
        write_answers(chosen.out, answers.answers(net, source, wanted, chosen.top, labels, known))
        return _told(source)
    with ExitStack() as stack:
        out = stack.enter_context(answers.opened(chosen.out)) if chosen.out else sys.stdout
        _write(out, shape(answers.answers(net, source, wanted, chosen.top, labels, known)))
    return _told(source)


def _told(source: inputs.Inputs) -> int:
    """The exit status; inputs that failed are counted on stderr."""
    if source.failed:
        print(f"sparknet predict: {left_out(source.failed)}", file=sys.stderr)
    return int(bool(source.failed))


def _write(out: TextIO, lines: Iterator[str]) -> None:
    for line in lines:
        out.write(line + "\n")


def data_entry(net: Net) -> Entry:
    """The entry of a net for images: the one without labels."""
    entries = [entry for entry in net.inputs.values() if not entry.is_label]
    named = [entry for entry in entries if entry.name == "data"]
    if len(entries) != 1 and not named:
        names = ", ".join(entry.name for entry in entries) or "none"
        raise WrongUse(f"predict feeds a net of one input; this one has {names}")
    return (named or entries)[0]


VERB = Verb(
    "predict",
    "Run a net on images or records and print the best classes, or all values of its outputs.",
    _arguments,
    _execute,
)
