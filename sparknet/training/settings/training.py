"""The settings of `train`, `simulate` and `Trainer`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from sparknet import renamed
from sparknet.errors import ArgumentError, SettingError, outside
from sparknet.loaders.image_settings import ImageKeywords
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.rows import Data
from sparknet.net.scores import Goal, check_names
from sparknet.training.events import OnEvent
from sparknet.training.schedule import ENDLESS, RunPlan, Schedule, steps_for
from sparknet.training.settings.fields import setting, values_of
from sparknet.training.settings.kinds import (
    Callback,
    Choice,
    ClassWeights,
    InputAxes,
    InputShapes,
    Kind,
    Name,
    Names,
    Number,
    Ports,
    Rates,
    Switch,
    Unwritten,
    Whole,
)
from sparknet.training.settings.module import ModuleKeywords, check_subject
from sparknet.training.strategies import Strategy, make_strategy
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision


StrPath = str | os.PathLike[str]
Protection = Literal["sealed", "encrypted", "none"]


@dataclass(frozen=True)
class WithSolver:
    """What comes first in every call."""

    solver: NetSource | Net


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Schedule):
    """The settings of every training."""

    strategy: str | Strategy = setting(
        "averaging", Kind(), "How workers synchronise: a name, or an object of sparknet.training."
    )
    workers: int = setting(1, Whole(1), "Workers that train together.", "workers")
    epochs: float | None = setting(
        None,
        Number(least=0),
        "Passes over the records, by all workers together, in place of steps.",
        "epochs",
    )
    metrics: Sequence[str] = setting(
        (),
        Names(),
        "Metrics of validation besides the test net's outputs: confusion, class_accuracy, "
        "mean_iou, mae, rmse or r2.",
    )
    seed: int | None = setting(
        None,
        Whole(),
        "The seed for shuffling the records (0 by default); of all random numbers where the solver "
        "has no random_seed.",
    )
    shuffle: bool = setting(
        True, Switch(), "Whether records are shuffled, or else read in their stored order."
    )
    precision: Precision = setting(
        "float32",
        Choice(("float32", "bf16")),
        "What the net multiplies: float32 or bf16 (docs/precision.md).",
    )
    device: str | None = setting(
        None,
        Name(),
        "Where the workers' nets compute: cuda, cuda:1, cpu or another name of PyTorch's, native "
        "for the native engine, auto for a GPU where a worker has one; several with commas between "
        "them are the workers' own (docs/gpu.md). The native engine unless it is given.",
    )
    dialect: str | None = setting(
        None,
        Name(),
        "The fork of Caffe that the net is of, where forks disagree (docs/compatibility.md).",
    )
    head: int | None = setting(
        None,
        Whole(1),
        "The classes of a new last layer, called head, for a net that has learned others "
        "(docs/training.md).",
        "classes",
    )
    lr_mult: Mapping[str, float] | None = setting(
        None,
        Rates(),
        "What the learning rates of layers are multiplied by, by their names or patterns of these, "
        "as in conv*; 0 keeps them; that of a new head is 10 unless it is named.",
    )
    shapes: Mapping[str, Sequence[int | None]] | None = setting(
        None, InputShapes(), "The shapes of inputs of a net that is a .onnx (docs/onnx.md)."
    )
    batch_axis: Mapping[str, int] | None = setting(
        None,
        InputAxes(),
        "The axis along which inputs of a net that is a .onnx have their records.",
    )
    on_event: OnEvent | None = setting(
        None, Callback(), "A function that is called with each event (sparknet.training.events)."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.metrics)
        if self.steps is not None and self.epochs is not None:
            raise SettingError("give steps or epochs, not both")

    def plan(
        self,
        net: str,
        validates: bool,
        records: int | None = None,
        batch_size: int | None = None,
        goals: Mapping[str, Goal] | None = None,
    ) -> RunPlan:
        """Return the plan, whose end by epochs is known when the records have been counted."""
        values = values_of(self, Schedule)
        if self.epochs is not None:
            values["steps"] = ENDLESS
            if records is not None and batch_size is not None:
                values["steps"] = steps_for(self.epochs, records, batch_size, self.workers)
        if not validates:
            if self.validate_every not in (0, Schedule.validate_every):
                warnings.warn(
                    f"validate_every={self.validate_every} counts for nothing: there is no "
                    "validation data (validation=)",
                    stacklevel=outside(),
                )
            values["validate_every"] = 0
        known_goals = goals or {}
        return RunPlan(**values, net=net, records=records, batch_size=batch_size, goals=known_goals)


@dataclass(frozen=True, kw_only=True)
class RunSettings(TrainingSettings):
    """The settings of a training by processes: on this machine, or on Spark."""

    hosts: int | None = setting(
        None,
        Whole(1),
        "The processes, or tasks of Spark, that carry the workers; one for each worker unless "
        "given.  The trained weights do not depend on it.",
        "hosts",
    )
    min_hosts: int | None = setting(
        None,
        Whole(1),
        "The fewest hosts to begin with, and to go on with when others are lost: those carry all "
        "workers.  Unless given, training needs all hosts.",
        "hosts",
    )
    min_workers: int | None = setting(None, Whole(1), "The old name of min_hosts.", "hosts")
    start_wait: float = setting(
        10.0,
        Number(least=0),
        "How long a run with min_hosts waits for more of its hosts, once these are there.",
        "seconds",
    )
    leave_behind: float | None = setting(
        None,
        Number(above=1),
        "In a run with min_hosts, how many times as long as the others a worker may take for a "
        "round before other hosts carry it; unless given, they wait for it.",
        "factor",
    )
    weight_column: str | None = setting(
        None, Name(), "The column with the weight of each row in every loss."
    )
    class_weights: (
        Mapping[str, float]
        | Mapping[int, float]
        | Mapping[float, float]
        | Literal["balanced"]
        | None
    ) = setting(
        None,
        ClassWeights(),
        "The weight of the rows of each label in the losses, 1 for labels left out; or balanced "
        "(docs/pipelines.md).",
    )
    snapshots: StrPath | None = setting(
        None, Kind(), "The folder of snapshots, in which each run has one of its own."
    )
    ports: Sequence[int] = setting(
        (0,), Ports(), "The ports on which workers may listen; 0 is any free one."
    )
    deadline: float = setting(  # type: ignore[assignment]
        None,
        Number(above=0),
        "The time without a heartbeat after which a worker counts as lost; 60 unless given, with "
        "min_hosts 20.",
        "seconds",
    )
    backend: str | ModuleType = setting(
        "embedded", Kind(), "The engine that trains: embedded, or another pycaffe (docs/net.md)."
    )
    protection: Protection | None = setting(
        None,
        Choice(("sealed", "encrypted", "none")),
        "How the traffic of the workers is protected (docs/comm.md); unless given, sealed, or "
        "encrypted where Spark itself encrypts.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_workers is not None:
            renamed.warn("min_workers=", "min_hosts=", outside())
            object.__setattr__(self, "min_hosts", self.min_hosts or self.min_workers)
            object.__setattr__(self, "min_workers", None)
        if self.deadline is None:
            usual = 60.0 if self.min_hosts is None else 20.0
            object.__setattr__(self, "deadline", usual)
        if self.snapshot_every and self.snapshots is None:
            raise SettingError(f"snapshot_every={self.snapshot_every} needs snapshots, a path")
        if self.hosts is not None and self.hosts > self.workers:
            raise SettingError(f"hosts={self.hosts} is more than workers={self.workers}")
        hosts = self.hosts or self.workers
        if self.min_hosts is not None and self.min_hosts > hosts:
            name = "workers" if self.hosts is None else "hosts"
            raise SettingError(f"min_hosts={self.min_hosts} is more than {name}={hosts}")
        if self.leave_behind is not None:
            self._check_behind(self.leave_behind)

    def _check_behind(self, factor: float) -> None:
        if self.min_hosts is None:
            raise SettingError(
                f"leave_behind={factor:g} needs min_hosts, how many hosts are enough"
            )
        strategy = make_strategy(self.strategy)
        if not strategy.leaves_behind:
            raise SettingError(
                f"leave_behind={factor:g} is of no use with {strategy.name}: it has no rounds in "
                "which workers are waited for alone"
            )


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


@dataclass(frozen=True, kw_only=True)
class TableKeywords:
    """The columns of a table that are a record."""

    features: Sequence[str] | None = setting(
        None,
        Names(),
        "Columns of a table, of one number each, that together are a record of the net's input.",
    )
    label: str | None = setting(
        None, Name(), "The column of a table with the labels: numbers, or names of classes."
    )


@dataclass(frozen=True)
class ProcessSettings(TableKeywords, LocalSettings, RunSettings, ModuleKeywords):
    """What `train` is given."""

    solver: NetSource | Net | None = None  # type: ignore[assignment]
    data: Data | None = None  # type: ignore[assignment]
    _: KW_ONLY
    resume: bool = setting(
        False, Switch(), "Whether to continue from the newest snapshot of the newest run, if any."
    )
    restarts: int = setting(
        3,
        Whole(0),
        "How many lost hosts are replaced by new ones, in a run with min_hosts.",
        "hosts",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_subject(self)
        for name in ("solver",) * (self.module is None) + ("data",):
            if getattr(self, name) is None:
                raise ArgumentError(f"missing a required argument: '{name}'")
