"""`sparknet train --spark`: runs `sparknet.spark.Trainer` from the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sparknet.cli import image_flags, sources
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.proto.caffe_pb2 import SolverParameter
    from sparknet.spark import Trained
    from sparknet.summary import Listener

FLAGS = ("spark", "master", "sql", "validation_sql", "columns")
PASSED_ON = {
    "epochs": "epochs",
    "seconds": "seconds",
    "validate_every": "validate_every",
    "patience": "patience",
    "snapshot_every": "snapshot_every",
    "keep": "keep",
    "seed": "seed",
    "shuffle": "shuffle",
    "iterations": "steps",
    "deadline": "deadline",
    "precision": "precision",
}
"""Flags, and the fields of `Trainer` that they set."""


def add(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("Spark", "--spark makes it sparknet.spark.Trainer")
    add = group.add_argument
    add("--spark", action="store_true", default=None, help="the workers are tasks of Spark")
    add("--master", metavar="URL", help="spark://…, yarn, k8s://…, sc://…; else a local Spark")
    add("--sql", metavar="QUERY", help="train on what a query gives, in place of --data")
    add("--validation-sql", metavar="QUERY", help="and test on what this one gives")
    add("--columns", metavar="BLOB=COLUMN[,…]", help="where the data's columns have other names")


def is_wanted(chosen: Namespace) -> bool:
    """Whether --spark is given; refuses flags that need it."""
    if not chosen.spark:
        for name in FLAGS[1:]:
            if getattr(chosen, name) is not None:
                raise WrongUse(
                    f"--{name.replace('_', '-')} is for training on Spark", "add --spark"
                )
    return bool(chosen.spark)


def train(
    chosen: Namespace, settings: SolverParameter, strategy: Any, snapshots: str, hear: Listener
) -> Trained:
    from sparknet.spark import Trainer, get_session

    columns = _columns(chosen.columns) if chosen.columns else None
    _check(chosen)
    own = (None, None) if chosen.sql or chosen.data else sources.of_solver(settings)
    if (
        not (chosen.sql or chosen.data) and own[0] is None
    ):  # checked first, because Spark starts slowly
        raise WrongUse("the net names no data", "give --data SOURCE or --sql QUERY")
    workers = chosen.workers or 2
    session = get_session(
        workers, master=chosen.master, threads=chosen.threads, name="sparknet train"
    )
    given = {name: getattr(chosen, flag) for flag, name in PASSED_ON.items()}
    try:
        trainer = Trainer(
            settings,
            strategy,
            workers,
            columns=columns,
            snapshots=snapshots,
            on_event=hear,
            **{name: value for name, value in given.items() if value is not None},
            **image_flags.keywords(chosen),
        )
        return trainer.fit(*_data(session, chosen, own), resume=bool(chosen.resume))
    finally:
        session.stop()


def _check(chosen: Namespace) -> None:
    if chosen.sql and chosen.data:
        raise WrongUse("give --data or --sql, not both")
    if chosen.validation_sql and chosen.validation:
        raise WrongUse("give --validation or --validation-sql, not both")


def _data(session: Any, chosen: Namespace, own: tuple[Any, Any]) -> tuple[Any, Any]:
    """The DataFrames to train on and to test with."""
    from sparknet.spark import read_records
    from sparknet.spark.reading import query

    data, validation = own
    how = image_flags.preprocessing(chosen)
    training = query(session, chosen.sql) if chosen.sql else None
    if training is None:
        training = (
            _opened(session, chosen.data, how) if chosen.data else read_records(session, data)
        )
    if chosen.validation_sql:
        return training, query(session, chosen.validation_sql)
    if chosen.validation:
        return training, _opened(session, chosen.validation, how)
    return training, None if validation is None else read_records(session, validation)


def _opened(session: Any, words: list[str], how: Preprocessing | None) -> Any:
    """Open Parquet and remote files by Spark's own reader, others by sparknet's."""
    from sparknet.spark import read_records
    from sparknet.spark.reading import read_parquet

    if all(word.rstrip("/").endswith(".parquet") or "://" in word for word in words):
        return read_parquet(session, words)
    return read_records(session, sources.open_records(words, how))


def _columns(text: str) -> dict[str, str]:
    columns = {}
    for part in text.split(","):
        blob, equals, column = part.partition("=")
        if not (blob and equals and column):
            raise WrongUse(f"--columns {text}: '{part}' is no BLOB=COLUMN")
        columns[blob] = column
    return columns
