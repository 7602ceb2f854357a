"""Flags of the verbs that run on Spark, and the DataFrames that they name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Sequence
from typing import Any

from sparknet.cli import sources
from sparknet.cli.verb import WrongUse

FLAGS = ("spark", "master", "sql", "columns")


def add(parser: ArgumentParser, title: str, work: str) -> _ArgumentGroup:
    """Add the flags to a group of their own, which other flags may join."""
    group = parser.add_argument_group("Spark", title)
    add = group.add_argument
    add("--spark", action="store_true", default=None, help=work)
    add(
        "--master",
        metavar="URL",
        help="the cluster: spark://…, yarn, k8s://…, sc://… (default: a local Spark)",
    )
    add("--sql", metavar="QUERY", help="read the rows of this query instead of files")
    add(
        "--columns",
        metavar="BLOB=COLUMN[,…]",
        help="the data's column for each input, where their names differ",
    )
    return group


def is_wanted(chosen: Namespace, flags: Sequence[str]) -> bool:
    """Whether --spark is given; refuses ``flags`` that need it."""
    if not chosen.spark:
        for name in flags:
            if getattr(chosen, name) is not None:
                raise WrongUse(f"--{name.replace('_', '-')} is for work on Spark", "add --spark")
    return bool(chosen.spark)


def columns(chosen: Namespace) -> dict[str, str] | None:
    if not chosen.columns:
        return None
    named = {}
    for part in chosen.columns.split(","):
        blob, equals, column = part.partition("=")
        if not (blob and equals and column):
            raise WrongUse(f"--columns {chosen.columns}: '{part}' is no BLOB=COLUMN")
        named[blob] = column
    return named


def opened(session: Any, words: Sequence[str], how: Any = None) -> Any:
    """Open Parquet and remote files by Spark's own reader, others by sparknet's.

    ``how`` is the `Preprocessing` of images.
    """
    from sparknet.spark import read_records
    from sparknet.spark.filesystem.reading import read_parquet

    if all(word.rstrip("/").endswith(".parquet") or "://" in word for word in words):
        return read_parquet(session, words)
    return read_records(session, sources.open_records(words, how))
