"""Flags of a training: its settings, and Spark's."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ArgumentGroup
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sparknet.cli import inputs
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.training.settings.fields import Setting
    from sparknet.training.settings.kinds import Kind

SPARK_FLAGS = ("spark", "master", "sql", "columns")


def add_spark(parser: ArgumentParser, title: str, work: str) -> _ArgumentGroup:
    """Add the flags to a group of their own, which other flags may join."""
    group = parser.add_argument_group("Spark", title)
    add_spark = group.add_argument
    add_spark("--spark", action="store_true", default=None, help=work)
    add_spark(
        "--master",
        metavar="URL",
        help="the cluster: spark://…, yarn, k8s://…, sc://… (default: a local Spark)",
    )
    add_spark("--sql", metavar="QUERY", help="read the rows of this query instead of files")
    add_spark(
        "--columns",
        metavar="BLOB=COLUMN[,…]",
        help="the data's column for each input, where their names differ",
    )
    return group


def is_on_spark(chosen: Namespace, flags: Sequence[str]) -> bool:
    """Return whether --spark is given; refuses ``flags`` that need it."""
    if not chosen.spark:
        for name in flags:
            if getattr(chosen, name) is not None:
                raise WrongUse(f"--{name.replace('_', '-')} is for work on Spark", "add --spark")
    return bool(chosen.spark)


def columns(chosen: Namespace) -> dict[str, str] | None:
    if not chosen.columns:
        return None
    columns_by_blob = {}
    for part in chosen.columns.split(","):
        blob, equals, column = part.partition("=")
        if not (blob and equals and column):
            raise WrongUse(f"--columns {chosen.columns}: '{part}' is no BLOB=COLUMN")
        columns_by_blob[blob] = column
    return columns_by_blob


def read_frame(
    session: Any, sql: str | None, words: Sequence[str], how: Any = None, solver: Any = None
) -> Any:
    """Return the DataFrame of a query or of files; ``how`` and a grey ``solver`` are for images."""
    from sparknet.net import Net
    from sparknet.net.rows import in_channels
    from sparknet.spark import read_records
    from sparknet.spark.filesystem.reading import query, read_parquet

    if sql:
        return query(session, sql)
    if all(word.rstrip("/").endswith(".parquet") or "://" in word for word in words):
        return read_parquet(session, words)
    records = inputs.open_records(words, how)
    if solver is not None:
        records = in_channels(records, lambda: Net(solver).inputs.values())
    return read_records(session, records)


FLAGS = {"steps": "iterations"}
"""Settings for which the `caffe` program has a flag of another name."""


def of_train() -> dict[str, Setting]:
    """Return the settings of `sparknet.train`; imported here, as other verbs need none of it."""
    from sparknet.training.settings.fields import settings_of
    from sparknet.training.settings.training import ProcessSettings

    return settings_of(ProcessSettings)


def of_spark() -> dict[str, Setting]:
    """Return the settings that `sparknet.spark.Trainer` has alone."""
    from sparknet.spark.train.trainer import Trainer
    from sparknet.training.settings.fields import settings_of

    shared = of_train()
    return {name: setting for name, setting in settings_of(Trainer).items() if name not in shared}


def of_plan() -> dict[str, Setting]:
    """Return the settings of `sparknet.plan`."""
    from sparknet.training.planning.planner import PlanningSettings
    from sparknet.training.settings.fields import settings_of

    return settings_of(PlanningSettings)


def flag_of(name: str) -> str:
    """Return the attribute of parsed flags that has a setting."""
    return FLAGS.get(name, name)


def add(parser: ArgumentParser, group: _ArgumentGroup, settings: dict[str, Setting]) -> None:
    """Add a flag to a group for each setting that a text can mean and that has no flag yet."""
    there = {action.dest for action in parser._actions}
    for name, setting in settings.items():
        if setting.kind.readable and flag_of(name) not in there:
            group.add_argument(_word(name, setting), dest=name, default=None, **_options(setting))


def _word(name: str, told: Setting) -> str:
    flag = name.replace("_", "-")
    return f"--no-{flag}" if told.default is True else f"--{flag}"


def _options(told: Setting) -> dict[str, Any]:
    from sparknet.training.settings.kinds import Choice, Numbers, Switch

    text = told.said.rstrip(".").replace("%", "%%")
    text = text[0].lower() + text[1:]
    if isinstance(told.kind, Switch):
        no = f"turn this off: {text}"
        action = "store_false" if told.default else "store_true"
        return {"action": action, "help": no if told.default else text}
    if told.default not in (None, (), (0,), 0):
        text += f" (default: {told.default})"
    if isinstance(told.kind, Choice):
        return {"choices": told.kind.words, "help": text}
    several = isinstance(told.kind, Numbers)
    form = told.kind.form if several or not told.unit else told.unit.upper()
    return {"type": _reader(told.kind), "metavar": form, "help": text}


def _reader(kind: Kind) -> Callable[[str], Any]:
    """Return what argparse calls with a flag's text."""

    def read(text: str) -> Any:
        try:
            return kind.read(text)
        except ValueError as error:
            raise ArgumentTypeError(f"'{text}' {error}") from None

    return read


def keywords_of(chosen: Namespace, settings: Iterable[str]) -> dict[str, Any]:
    """Return the settings whose flags are given, as keywords."""
    values = {name: getattr(chosen, flag_of(name), None) for name in settings}
    return {name: value for name, value in values.items() if value is not None}
