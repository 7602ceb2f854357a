"""docs/settings.md, made from the settings themselves."""

from __future__ import annotations

from pathlib import Path

from sparknet.cli import setting_flags
from sparknet.spark import Trainer
from sparknet.training.settings.fields import Setting, settings_of
from sparknet.training.settings.module import ModuleKeywords
from sparknet.training.settings.training import (
    LocalSettings,
    ProcessSettings,
    RunSettings,
    TableKeywords,
    TrainingSettings,
)
from sparknet.training.virtual.simulation import SimulationSettings

PAGE = Path(__file__).with_name("settings.md")
HEAD = """# Settings of training

Every keyword of `sparknet.train`, `simulate` and `Trainer`, with the flag of `sparknet train` that
sets it. `make docs` writes this page from the settings themselves; do not edit it by hand. In a
[pipeline](pipelines.md) each setting of `Trainer`, but for those of a module and of tables, is a
Param of the same name; `steps` is also called `maxIter`, `weight_column` is called `weightCol`, and
`invalid` is `handleInvalid`. `Trainer` has the `weights` of `train`, too, and takes a `Net` or a
`SparkModel` there. The settings of images are in [images.md](images.md#settings), and what nets of
unknown origin may ask for in
[security.md](security.md#the-memory-of-nets-of-unknown-origin).
"""
GROUPS = {
    "Every training": (TrainingSettings, ()),
    "train and Trainer": (RunSettings, (TrainingSettings,)),
    "train and Trainer, of a module of PyTorch": (ModuleKeywords, ()),
    "train and Trainer, on tables": (TableKeywords, ()),
    "train and simulate": (LocalSettings, (TrainingSettings,)),
    "train alone": (
        ProcessSettings,
        (RunSettings, LocalSettings, ModuleKeywords, TableKeywords),
    ),
    "Trainer alone": (Trainer, (RunSettings, LocalSettings, ModuleKeywords, TableKeywords)),
    "simulate alone": (SimulationSettings, (LocalSettings, ModuleKeywords)),
}
"""Heading → the settings, without those of other groups."""
_FLAGS = {"validation": "`--validation`", "shuffle": "`--no-shuffle`"}


def _row(name: str, told: Setting) -> str:
    flag = f"`--{setting_flags.flag_of(name).replace('_', '-')}`"
    flag = _FLAGS.get(name, flag if told.kind.readable else "–")
    default = "–" if told.default is None else f"`{told.default!r}`"
    return f"| `{name}` | {flag} | {default} | {told.unit or '–'} | {told.said} |"


def _group(title: str, kind: type, others: tuple[type, ...]) -> list[str]:
    known = {name for one in others for name in settings_of(one)}
    rows = [_row(name, told) for name, told in settings_of(kind).items() if name not in known]
    head = ["| keyword | flag | default | counts | |", "|---|---|---|---|---|"]
    return [f"## {title}", "", *head, *sorted(rows), ""]


def page() -> str:
    groups = (_group(title, *kinds) for title, kinds in GROUPS.items())
    return "\n".join([HEAD, *(line for group in groups for line in group)])
