"""`sparknet train` by workers: `sparknet.train` and, with --spark, `sparknet.spark.Trainer`."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags as cli_flags
from sparknet.cli import image_flags, inputs, setting_flags, train_outputs
from sparknet.cli.settings import read_settings
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.proto.caffe_pb2 import SolverParameter
    from sparknet.report import Listener
    from sparknet.spark import SparkTrained
    from sparknet.training.result import Trained

_EXPLICIT = {"strategy", "workers", "snapshots", "validation", "weights", "dialect"}
"""Settings that are put together from several flags, or have been read with the solver."""
_SPARK_EXPLICIT = {"strategy", "workers", "snapshots", "columns", "weights", "resources"}
"""The same of Trainer's, and those that have no flag."""
_LOCAL = {"validation", "threads", "resume"}
"""Settings of `sparknet.train` that have another way on Spark."""
_OF_THE_SOLVER = {"steps", "threads", "precision", "weights", "dialect"}
"""Settings that a solver takes that trains alone."""


def add(parser: ArgumentParser) -> None:
    """Add the flags that `caffe train` does not have."""
    group = parser.add_argument_group(
        "workers and data",
        "With any of these flags worker processes train, as by sparknet.train.",
    )
    add = group.add_argument
    add("--data", metavar="SOURCE", nargs="+", help=inputs.HELP)
    add("--validation", metavar="SOURCE", nargs="+", help="records to test with, every few rounds")
    add("--strategy", metavar="NAME[:SETTING=VALUE,…]", help="such as averaging:steps=10")
    add("--snapshots", metavar="FOLDER", help="else snapshot_prefix with '_snapshots'")
    setting_flags.add(parser, group, setting_flags.of_train())
    title = "With --spark the workers are tasks of Spark, as by sparknet.spark.Trainer."
    spark = setting_flags.add_spark(parser, title, "the workers are tasks of Spark")
    spark.add_argument(
        "--validation-sql", metavar="QUERY", help="validate on the rows of this query"
    )
    setting_flags.add(parser, spark, setting_flags.of_spark())
    cli_flags.add_old(parser, "--weight", "--weight-column")


def _spark_flags() -> list[str]:
    """Return the flags that only make sense with --spark."""
    own = setting_flags.of_spark().keys() - _SPARK_EXPLICIT
    return [*setting_flags.SPARK_FLAGS, "validation_sql", *sorted(own)]


def are_wanted(chosen: Namespace) -> bool:
    """Return whether a flag is given that a solver that trains alone has no use for."""
    settings = setting_flags.of_train().keys() - _OF_THE_SOLVER
    names = {*settings, "data", "validation", *_spark_flags(), *image_flags.NAMES}
    return any(getattr(chosen, name, None) is not None for name in names)


def train(chosen: Namespace) -> int:
    """Train; returns the exit status.  At a signal sparknet.train writes a snapshot and raises."""
    if chosen.snapshot:
        raise WrongUse("-snapshot is for training by the solver alone", "give --resume")
    settings = read_settings(chosen)
    prefix = settings.snapshot_prefix
    train_outputs.check(chosen, prefix)
    with ExitStack() as stack:
        listener = train_outputs.listener(chosen, settings, stack)
        strategy = parse_strategy(chosen.strategy or "averaging")
        snapshots = chosen.snapshots or f"{prefix}_snapshots"
        on_spark = setting_flags.is_on_spark(chosen, _spark_flags()[1:])
        run = _train_on_spark if on_spark else _train_here
        trained = run(chosen, settings, strategy, snapshots, listener)
    outcome = trained.outcome
    iteration = outcome.iteration if outcome.best is None else outcome.best
    out = chosen.out or f"{prefix}_iter_{iteration}.caffemodel"
    trained.save(out)
    train_outputs.say_written(out)
    if not chosen.json:
        for line in train_outputs.metric_lines(outcome.metrics):
            print(line)
    return 0


def _train_here(
    chosen: Namespace, settings: SolverParameter, strategy: Any, snapshots: str, listener: Listener
) -> Trained:
    from sparknet.training.local_training import train as start

    how = image_flags.preprocessing(chosen)
    data, validation = (None, None) if chosen.data else inputs.of_solver(settings)
    opened = (lambda words, _: words) if chosen.features else inputs.open_records
    if chosen.data:
        data = opened(chosen.data, how)
    if chosen.validation:
        validation = opened(chosen.validation, how)
    if data is None:
        raise WrongUse("the net names no data", "give --data SOURCE")
    names = setting_flags.of_train().keys() - _EXPLICIT
    return start(
        settings,
        data,
        workers=chosen.workers or 1,
        validation=validation,
        strategy=strategy,
        snapshots=snapshots,
        on_event=listener,
        **setting_flags.keywords_of(chosen, names),
        **image_flags.keywords(chosen),
    )


def _train_on_spark(
    chosen: Namespace, settings: SolverParameter, strategy: Any, snapshots: str, listener: Listener
) -> SparkTrained:
    from sparknet.spark import Trainer, get_session
    from sparknet.training.settings.fields import settings_of

    columns = setting_flags.columns(chosen)
    _check_spark(chosen)
    own = (None, None) if chosen.sql or chosen.data else inputs.of_solver(settings)
    if (
        not (chosen.sql or chosen.data) and own[0] is None
    ):  # checked first, because Spark starts slowly
        raise WrongUse("the net names no data", "give --data SOURCE or --sql QUERY")
    workers = chosen.workers or 1
    session = get_session(
        workers, master=chosen.master, threads=chosen.threads, name="sparknet train"
    )
    names = settings_of(Trainer).keys() - _SPARK_EXPLICIT
    try:
        trainer = Trainer(
            settings,
            strategy,
            workers,
            columns=columns,
            snapshots=snapshots,
            on_event=listener,
            **setting_flags.keywords_of(chosen, names),
            **image_flags.keywords(chosen),
        )
        return trainer.fit(*_data(session, chosen, settings, own), resume=bool(chosen.resume))
    finally:
        session.stop()


def _check_spark(chosen: Namespace) -> None:
    from sparknet.spark import Trainer
    from sparknet.training.settings.fields import settings_of

    others = (
        setting_flags.of_train().keys() - settings_of(Trainer).keys() - _SPARK_EXPLICIT - _LOCAL
    )
    if keywords := setting_flags.keywords_of(chosen, sorted(others)):
        raise WrongUse(f"--{next(iter(keywords)).replace('_', '-')} is not for work on Spark")
    if chosen.sql and chosen.data:
        raise WrongUse("give --data or --sql, not both")
    if chosen.validation_sql and chosen.validation:
        raise WrongUse("give --validation or --validation-sql, not both")


def _data(
    session: Any, chosen: Namespace, settings: SolverParameter, own: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Return the DataFrames to train on and to test with."""
    from sparknet.spark import read_records
    from sparknet.spark.filesystem.reading import query

    data, validation = own
    how = image_flags.preprocessing(chosen)
    training = query(session, chosen.sql) if chosen.sql else None
    if training is None:
        training = (
            setting_flags.open_by_spark(session, chosen.data, how, settings)
            if chosen.data
            else read_records(session, data)
        )
    if chosen.validation_sql:
        return training, query(session, chosen.validation_sql)
    if chosen.validation:
        return training, setting_flags.open_by_spark(session, chosen.validation, how, settings)
    return training, None if validation is None else read_records(session, validation)


def parse_strategy(text: str) -> Any:
    """Return the strategy in ``name:setting=value,…``; values are JSON, or words."""
    from sparknet.training.strategies import make_strategy

    name, _, rest = text.partition(":")
    settings = {}
    for part in filter(None, rest.split(",")):
        setting, equals, value = part.partition("=")
        if not equals:
            raise WrongUse(f"--strategy {text}: '{part}' is no SETTING=VALUE")
        settings[setting] = _value(value)
    return make_strategy(name, **settings)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
