"""`sparknet train`: trains as `caffe train` does, or with several workers on any data."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from sparknet.cli import (
    caffe_flags,
    flags,
    image_flags,
    inputs,
    net_file,
    setting_flags,
    train_outputs,
    train_solver,
)
from sparknet.cli.verb import Verb, WrongUse

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


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_solver(parser)
    flags.add(parser, "weights", metavar="FILE[,FILE]", help="models to start from (fine-tuning)")
    flags.add(parser, "snapshot", metavar="FILE", help="a .solverstate to resume from")
    flags.add(
        parser,
        "iterations",
        "--steps",
        type=flags.positive,
        help="the iteration to stop at, in place of max_iter",
    )
    flags.add_state(parser)
    flags.add_trust(parser)
    flags.add_precision(parser, training=True)
    flags.add_threads(parser)
    net_file.add_axes(parser)
    for name, default in (("sigint", "stop"), ("sighup", "snapshot")):
        flags.add(
            parser,
            f"{name}_effect",
            choices=train_solver.EFFECTS,
            default=default,
            help=f"what {name.upper()} does; '{default}' by default",
        )
    flags.add_gpu(parser)
    caffe_flags.add_unused(parser)
    train_outputs.add(parser)


def _more(parser: ArgumentParser) -> None:
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
    flags.add_old(parser, "--weight", "--weight-column")
    image_flags.add(parser, training=True)


def _spark_flags() -> list[str]:
    """Return the flags that only make sense with --spark."""
    own = setting_flags.of_spark().keys() - _SPARK_EXPLICIT
    return [*setting_flags.SPARK_FLAGS, "validation_sql", *sorted(own)]


def _wants_workers(chosen: Namespace) -> bool:
    """Return whether a flag is given that a solver that trains alone has no use for."""
    settings = setting_flags.of_train().keys() - _OF_THE_SOLVER
    names = {*settings, "data", "validation", *_spark_flags(), *image_flags.NAMES}
    return any(getattr(chosen, name, None) is not None for name in names)


def _train_by_workers(chosen: Namespace) -> int:
    """Train; returns the exit status.  At a signal sparknet.train writes a snapshot and raises."""
    if chosen.snapshot:
        raise WrongUse("-snapshot is for training by the solver alone", "give --resume")
    settings = net_file.read_solver(chosen)
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
    open_words = (lambda words, _: words) if chosen.features else inputs.open_records
    if chosen.data:
        data = open_words(chosen.data, how)
    if chosen.validation:
        validation = open_words(chosen.validation, how)
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
    from sparknet.spark import Trainer, get_session, read_records
    from sparknet.training.settings.fields import settings_of

    columns = setting_flags.columns(chosen)
    _check_spark(chosen)
    own = (None, None) if chosen.sql or chosen.data else inputs.of_solver(settings)
    # Spark starts slowly, so this is checked before.
    if not (chosen.sql or chosen.data) and own[0] is None:
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
        how = image_flags.preprocessing(chosen)

        def frame(sql: str | None, words: Any, records: Any) -> Any:
            if sql or words:
                return setting_flags.read_frame(session, sql, words, how, settings)
            return None if records is None else read_records(session, records)

        data = frame(chosen.sql, chosen.data, own[0])
        validation = frame(chosen.validation_sql, chosen.validation, own[1])
        return trainer.fit(data, validation, resume=bool(chosen.resume))
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


def _execute(chosen: Namespace) -> int:
    net_file.take_learned(chosen)
    if not net_file.is_recipe(chosen):
        net_file.take_solver(chosen)
    if chosen.snapshot and chosen.weights:
        raise WrongUse("give -snapshot to resume or -weights to fine-tune, not both")
    if "data" in chosen and _wants_workers(chosen):
        return _train_by_workers(chosen)
    flags.use_threads(chosen)
    return train_solver.train(chosen)


VERB = Verb(
    "train",
    "Train a net by a solver file, as caffe train does; or by several workers.",
    _arguments,
    _execute,
    more=_more,
)
