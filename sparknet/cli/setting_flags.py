"""Flags of the settings of training: one for each, under the setting's own name."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ArgumentGroup
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparknet.training.kinds import Kind
    from sparknet.training.setting import Setting

FLAGS = {"steps": "iterations"}
"""Settings for which the `caffe` program has a flag of another name."""


def of_train() -> dict[str, Setting]:
    """The settings of `sparknet.train`; imported here, as other verbs need none of it."""
    from sparknet.training.local_settings import ProcessSettings
    from sparknet.training.setting import settings_of

    return settings_of(ProcessSettings)


def of_spark() -> dict[str, Setting]:
    """The settings that `sparknet.spark.Trainer` has alone."""
    from sparknet.spark.train.trainer import Trainer
    from sparknet.training.setting import settings_of

    shared = of_train()
    return {name: told for name, told in settings_of(Trainer).items() if name not in shared}


def of_plan() -> dict[str, Setting]:
    """The settings of `sparknet.plan`."""
    from sparknet.training.planning.planner import PlanningSettings
    from sparknet.training.setting import settings_of

    return settings_of(PlanningSettings)


def flag_of(name: str) -> str:
    """The attribute of parsed flags that has a setting."""
    return FLAGS.get(name, name)


def add(parser: ArgumentParser, group: _ArgumentGroup, settings: dict[str, Setting]) -> None:
    """Add a flag to a group for each setting that a text can mean and that has no flag yet."""
    there = {action.dest for action in parser._actions}
    for name, told in settings.items():
        if told.kind.readable and flag_of(name) not in there:
            group.add_argument(_word(name, told), dest=name, default=None, **_options(told))


def _word(name: str, told: Setting) -> str:
    flag = name.replace("_", "-")
    return f"--no-{flag}" if told.default is True else f"--{flag}"


def _options(told: Setting) -> dict[str, Any]:
    from sparknet.training.kinds import Choice, Numbers, Switch

    said = told.said.rstrip(".").replace("%", "%%")
    said = said[0].lower() + said[1:]
    if isinstance(told.kind, Switch):
        no = f"turn this off: {said}"
        action = "store_false" if told.default else "store_true"
        return {"action": action, "help": no if told.default else said}
    if told.default not in (None, (), (0,), 0):
        said += f" (default: {told.default})"
    if isinstance(told.kind, Choice):
        return {"choices": told.kind.words, "help": said}
    several = isinstance(told.kind, Numbers)
    form = told.kind.form if several or not told.unit else told.unit.upper()
    return {"type": _reader(told.kind), "metavar": form, "help": said}


def _reader(kind: Kind) -> Callable[[str], Any]:
    """What argparse calls with a flag's text."""

    def read(text: str) -> Any:
        try:
            return kind.read(text)
        except ValueError as error:
            raise ArgumentTypeError(f"'{text}' {error}") from None

    return read


def given(chosen: Namespace, settings: Iterable[str]) -> dict[str, Any]:
    """The settings whose flags are given, as keywords."""
    found = {name: getattr(chosen, flag_of(name), None) for name in settings}
    return {name: value for name, value in found.items() if value is not None}
