"""`sparknet predict --spark` and `features --spark`: `SparkModel` from the command line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags, image_flags, net_file, spark_flags
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.net import Entry

OWN = ("workers", "invalid", "reason", "overwrite")


def add(parser: ArgumentParser) -> None:
    title = "With --spark the input is Parquet, images, tars or a query, and the output Parquet."
    add = spark_flags.add(parser, title, "compute the rows in Spark tasks").add_argument
    add("--workers", type=flags.positive, metavar="K", help="the number of cores of a local Spark")
    add(
        "--invalid",
        choices=("raise", "null", "drop"),
        help="what to do with a row that cannot be read (default: raise)",
    )
    add("--reason", metavar="COLUMN", help="add a column that says what is wrong with such a row")
    add("--overwrite", action="store_true", default=None, help="replace existing files at --out")


def is_wanted(chosen: Namespace) -> bool:
    return spark_flags.is_wanted(chosen, (*spark_flags.FLAGS[1:], *OWN))


def write(
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
        columns = {**fed, **(spark_flags.columns(chosen) or {})}
        made = model.transform(
            data,
            blobs,
            columns=columns,
            batch=chosen.batch,
            invalid=chosen.invalid or "raise",
            reason=chosen.reason,
            **keywords,
        )
        write_parquet(made.drop(*_bulky(data, columns)), chosen.out, bool(chosen.overwrite))
    finally:
        session.stop()
    print(f"sparknet {verb}: wrote {chosen.out}", file=sys.stderr)
    return 0


def _data(session: Any, chosen: Namespace, entry: Entry) -> tuple[Any, dict[str, str]]:
    """The rows, and which of their columns the net's input is, where that is known."""
    from sparknet.loaders.image_files import SUFFIXES
    from sparknet.spark import read_images
    from sparknet.spark.filesystem.reading import query

    if chosen.sql:
        return query(session, chosen.sql), {}
    words = chosen.inputs
    if all(_holds_images(word, SUFFIXES) for word in words):
        return read_images(session, *words), {entry.name: "content"}
    return spark_flags.opened(session, words, image_flags.preprocessing(chosen)), {}


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
    """The net's own input columns, if they hold bytes or lists."""
    kinds = dict(data.dtypes)
    simple = ("int", "bigint", "smallint", "tinyint", "float", "double", "string", "boolean")
    return [name for name in columns.values() if kinds.get(name) not in simple]
