"""`sparknet predict`: prints a net's outputs for images and records, here or on Spark."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sparknet.cli import flags, image_flags, inputs, net_file, predictions, setting_flags
from sparknet.cli.record_files import write_answers
from sparknet.cli.verb import Verb, WrongUse, left_out
from sparknet.loaders.image_files import read_labels

if TYPE_CHECKING:
    from sparknet.net import Entry, Net

_SPARK_FLAGS = ("workers", "invalid", "reason", "overwrite")


def add_spark(parser: ArgumentParser) -> None:
    title = "With --spark the input is Parquet, images, tars or a query, and the output Parquet."
    add_spark = setting_flags.add_spark(
        parser, title, "compute the rows in Spark tasks"
    ).add_argument
    add_spark(
        "--workers", type=flags.positive, metavar="K", help="the number of cores of a local Spark"
    )
    add_spark(
        "--invalid",
        choices=("raise", "null", "drop"),
        help="what to do with a row that cannot be read (default: raise)",
    )
    add_spark(
        "--reason", metavar="COLUMN", help="add a column that says what is wrong with such a row"
    )
    add_spark(
        "--overwrite", action="store_true", default=None, help="replace existing files at --out"
    )


def is_on_spark(chosen: Namespace) -> bool:
    return setting_flags.is_on_spark(chosen, (*setting_flags.SPARK_FLAGS[1:], *_SPARK_FLAGS))


def write_by_spark(
    chosen: Namespace, verb: str, entry: Entry, blobs: Sequence[str] | None, **keywords: Any
) -> int:
    """Write the rows with columns for the blobs, and without those that the net is fed."""
    from sparknet.spark import SparkModel, get_session
    from sparknet.spark.filesystem.reading import write_parquet

    if not chosen.out:
        raise WrongUse("--spark writes Parquet", "give --out FOLDER")
    if bool(chosen.inputs) == bool(chosen.sql):
        raise WrongUse("give INPUT or --sql QUERY, and not both")
    model = SparkModel(net_file.fed_net(chosen))
    session = get_session(
        chosen.workers, master=chosen.master, threads=chosen.threads, name=f"sparknet {verb}"
    )
    try:
        data, fed = _data(session, chosen, entry)
        columns = {**fed, **(setting_flags.columns(chosen) or {})}
        predictions = model.transform(
            data,
            blobs,
            columns=columns,
            batch=chosen.batch,
            invalid=chosen.invalid or "raise",
            reason=chosen.reason,
            **keywords,
        )
        write_parquet(predictions.drop(*_bulky(data, columns)), chosen.out, bool(chosen.overwrite))
    finally:
        session.stop()
    print(f"sparknet {verb}: wrote {chosen.out}", file=sys.stderr)
    return 0


def _data(session: Any, chosen: Namespace, entry: Entry) -> tuple[Any, dict[str, str]]:
    """Return the rows, and which of their columns the net's input is, where that is known."""
    from sparknet.loaders.image_files import SUFFIXES
    from sparknet.spark import read_images

    if not chosen.sql and all(_holds_images(word, SUFFIXES) for word in chosen.inputs):
        return read_images(session, *chosen.inputs), {entry.name: "content"}
    how = None if chosen.sql else image_flags.preprocessing(chosen)
    return setting_flags.read_frame(session, chosen.sql, chosen.inputs, how), {}


def _holds_images(word: str, suffixes: set[str]) -> bool:
    path = Path(word)
    if path.suffix.lower() in {*suffixes, ".tar"}:
        return True
    stored = ("data.mdb", "CURRENT", "_SUCCESS")
    return (
        path.is_dir()
        and path.suffix != ".parquet"
        and not any((path / name).exists() for name in stored)
    )


def _bulky(data: Any, columns: dict[str, str]) -> list[str]:
    """Return the net's own input columns, if they hold bytes or lists."""
    kinds = dict(data.dtypes)
    simple = ("int", "bigint", "smallint", "tinyint", "float", "double", "string", "boolean")
    return [name for name in columns.values() if kinds.get(name) not in simple]


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
        choices=tuple(predictions.FORMATS),
        default="text",
        help="the form of the answers (default: text)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="the file to write, which may be a .parquet (default: stdout)"
    )
    flags.add_gpu(parser)
    add_spark(parser)
    flags.add_json(parser, "the same as --format json: a line of JSON for each input")


def _execute(chosen: Namespace) -> int:
    net_file.take_words(chosen)
    outputs = chosen.outputs.split(",") if chosen.outputs else None
    if is_on_spark(chosen):
        entry = data_entry(net_file.fed_net(chosen))
        top = chosen.top or None
        return write_by_spark(chosen, "predict", entry, outputs, top=top, labels=chosen.labels)
    if not chosen.inputs:
        raise WrongUse("give INPUT: image files, or a data set")
    net = net_file.fed_net(chosen)
    labels = read_labels(chosen.labels) if chosen.labels else None
    class_names = net.labels
    source = inputs.Inputs(chosen, data_entry(net), net)
    shape = predictions.FORMATS["json" if chosen.json else chosen.format]
    if chosen.out and chosen.out.endswith(".parquet"):
        write_answers(
            chosen.out,
            predictions.predictions(net, source, outputs, chosen.top, labels, class_names),
        )
        return _status(source)
    with ExitStack() as stack:
        out = stack.enter_context(predictions.open_output(chosen.out)) if chosen.out else sys.stdout
        _write(
            out,
            shape(predictions.predictions(net, source, outputs, chosen.top, labels, class_names)),
        )
    return _status(source)


def _status(source: inputs.Inputs) -> int:
    """Return the exit status; inputs that failed are counted on stderr."""
    if source.failed:
        print(f"sparknet predict: {left_out(source.failed)}", file=sys.stderr)
    return int(bool(source.failed))


def _write(out: TextIO, lines: Iterator[str]) -> None:
    for line in lines:
        out.write(line + "\n")


def data_entry(net: Net) -> Entry:
    """Return the entry of a net for images: the one without labels."""
    entries = [entry for entry in net.inputs.values() if not entry.is_label]
    matches = [entry for entry in entries if entry.name == "data"]
    if len(entries) != 1 and not matches:
        names = ", ".join(entry.name for entry in entries) or "none"
        raise WrongUse(f"predict feeds a net of one input; this one has {names}")
    return (matches or entries)[0]


VERB = Verb(
    "predict",
    "Run a net on images or records and print the best classes, or all values of its outputs.",
    _arguments,
    _execute,
)
