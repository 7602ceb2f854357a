"""`sparknet train --spark`: runs `sparknet.spark.Trainer` from the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags as cli_flags
from sparknet.cli import image_flags, setting_flags, sources, spark_flags
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.proto.caffe_pb2 import SolverParameter
    from sparknet.report import Listener
    from sparknet.spark import SparkTrained

_EXPLICIT = {"strategy", "workers", "snapshots", "columns", "weights", "resources"}
"""Settings that are put together from several flags, were read with the solver, or have no flag."""

_LOCAL = {"validation", "threads", "resume"}
"""Settings of `sparknet.train` that have another way here."""


def add(parser: ArgumentParser) -> None:
    title = "With --spark the workers are tasks of Spark, as by sparknet.spark.Trainer."
    group = spark_flags.add(parser, title, "the workers are tasks of Spark")
    group.add_argument(
        "--validation-sql", metavar="QUERY", help="validate on the rows of this query"
    )
    setting_flags.add(parser, group, setting_flags.of_spark())
    cli_flags.add_old(parser, "--weight", "--weight-column")


def flags() -> list[str]:
    """The flags that only make sense with --spark."""
    own = setting_flags.of_spark().keys() - _EXPLICIT
    return [*spark_flags.FLAGS, "validation_sql", *sorted(own)]


def is_wanted(chosen: Namespace) -> bool:
    return spark_flags.is_wanted(chosen, flags()[1:])


def train(
    chosen: Namespace, settings: SolverParameter, strategy: Any, snapshots: str, hear: Listener
) -> SparkTrained:
    from sparknet.spark import Trainer, get_session
    from sparknet.training.setting import settings_of

    columns = spark_flags.columns(chosen)
    _check(chosen)
    own = (None, None) if chosen.sql or chosen.data else sources.of_solver(settings)
    if (
        not (chosen.sql or chosen.data) and own[0] is None
    ):  # checked first, because Spark starts slowly
        raise WrongUse("the net names no data", "give --data SOURCE or --sql QUERY")
    workers = chosen.workers or 1
    session = get_session(
        workers, master=chosen.master, threads=chosen.threads, name="sparknet train"
    )
    names = settings_of(Trainer).keys() - _EXPLICIT
    try:
        trainer = Trainer(
            settings,
            strategy,
            workers,
            columns=columns,
            snapshots=snapshots,
            on_event=hear,
            **setting_flags.given(chosen, names),
            **image_flags.keywords(chosen),
        )
        return trainer.fit(*_data(session, chosen, own), resume=bool(chosen.resume))
    finally:
        session.stop()


def _check(chosen: Namespace) -> None:
    from sparknet.spark import Trainer
    from sparknet.training.setting import settings_of

    others = setting_flags.of_train().keys() - settings_of(Trainer).keys() - _EXPLICIT - _LOCAL
    if given := setting_flags.given(chosen, sorted(others)):
        raise WrongUse(f"--{next(iter(given)).replace('_', '-')} is not for work on Spark")
    if chosen.sql and chosen.data:
        raise WrongUse("give --data or --sql, not both")
    if chosen.validation_sql and chosen.validation:
        raise WrongUse("give --validation or --validation-sql, not both")


def _data(session: Any, chosen: Namespace, own: tuple[Any, Any]) -> tuple[Any, Any]:
    """The DataFrames to train on and to test with."""
    from sparknet.spark import read_records
    from sparknet.spark.filesystem.reading import query

    data, validation = own
    how = image_flags.preprocessing(chosen)
    training = query(session, chosen.sql) if chosen.sql else None
    if training is None:
        training = (
            spark_flags.opened(session, chosen.data, how)
            if chosen.data
            else read_records(session, data)
        )
    if chosen.validation_sql:
        return training, query(session, chosen.validation_sql)
    if chosen.validation:
        return training, spark_flags.opened(session, chosen.validation, how)
    return training, None if validation is None else read_records(session, validation)
