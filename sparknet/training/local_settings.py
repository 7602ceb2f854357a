"""LocalSettings and ProcessSettings: what trainings on this machine are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from sparknet.errors import ArgumentError
from sparknet.loaders.image_settings import ImageKeywords
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.rows import Data
from sparknet.training.kinds import Kind, Name, Names, Switch, Unwritten, Whole
from sparknet.training.modules.keywords import ModuleKeywords, check_subject
from sparknet.training.setting import setting
from sparknet.training.training_settings import (
    RunSettings,
    StrPath,
    TrainingSettings,
    WithSolver,
)
from sparknet.weights import WeightCollection


@dataclass(frozen=True)
class LocalSettings(ImageKeywords, TrainingSettings, WithSolver):
    """What trainings on this machine are given, by processes or by virtual workers."""

    data: Data
    _: KW_ONLY
    validation: Data | None = setting(
        None, Unwritten(), "Records to validate with, in any form that the training data may have."
    )
    weights: StrPath | WeightCollection | None = setting(
        None,
        Kind(),
        "The initial weights: a caffemodel, a WeightCollection, or a path of snapshots, of which "
        "the newest is used.",
    )
    threads: int | None = setting(
        None,
        Whole(1),
        "Threads of each worker; an equal share of the cores unless given.",
        "threads",
    )


@dataclass(frozen=True)
class ProcessSettings(LocalSettings, RunSettings, ModuleKeywords):
    """What `train` is given."""

    solver: NetSource | Net | None = None  # type: ignore[assignment]
    data: Data | None = None  # type: ignore[assignment]
    _: KW_ONLY
    features: Sequence[str] | None = setting(
        None,
        Names(),
        "Columns of a table, of one number each, that together are a record of the net's input.",
    )
    label: str | None = setting(
        None, Name(), "The column of a table with the labels: numbers, or names of classes."
    )
    resume: bool = setting(
        False, Switch(), "Whether to continue from the newest snapshot of the newest run, if any."
    )
    restarts: int = setting(
        3,
        Whole(0),
        "How many lost workers are replaced by new ones, in a run with min_workers.",
        "workers",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_subject(self)
        for name in ("solver",) * (self.module is None) + ("data",):
            if getattr(self, name) is None:
                raise ArgumentError(f"missing a required argument: '{name}'")
