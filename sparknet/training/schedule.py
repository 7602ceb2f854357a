"""Schedule: when training ends, validates and writes snapshots; Tally: the totals so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, nan
from typing import TYPE_CHECKING, Any

from sparknet.errors import SettingError
from sparknet.net.scores import Goal
from sparknet.training.checkpoints.store import Store
from sparknet.training.events import OnEvent
from sparknet.training.settings.fields import check_settings, setting
from sparknet.training.settings.kinds import Choice, Name, Number, Switch, Whole
from sparknet.weights import Layout

if TYPE_CHECKING:
    from sparknet.training.workers.host_memory import HostMemory

ENDLESS = 1 << 62


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When training ends, when it validates, and when it writes snapshots."""

    steps: int | None = setting(
        None,
        Whole(0),
        "The iteration at which training ends; the solver's max_iter where no end is given.",
        "iterations",
    )
    seconds: float | None = setting(
        None,
        Number(above=0),
        "The time limit; the round that it falls into is the last one.",
        "seconds",
    )
    validate_every: int = setting(
        10, Whole(0), "Rounds between validations; 0 means never.", "rounds"
    )
    metric: str | None = setting(
        None,
        Name(),
        "The metric by which validations are compared; the first one unless given.",
    )
    goal: Goal | None = setting(
        None,
        Choice(("max", "min")),
        "Whether a larger or a smaller metric is better; needed for a metric that is no loss, no "
        "accuracy and none of metrics.",
    )
    patience: int | None = setting(
        None,
        Whole(1),
        "Validations without a better one after which training ends with the best weights.",
        "validations",
    )
    histograms_every: int = setting(
        0,
        Whole(0),
        "Rounds between histograms of each layer's weights and gradients; 0 means never.",
        "rounds",
    )
    diverged: float = setting(
        20.0,
        Number(least=1, finite=False),
        "The multiple of the first round's loss (or of 1 if larger) above which training fails.",
        "factor",
    )
    snapshot_every: int = setting(
        0, Whole(0), "Rounds between snapshots; 0 means only when interrupted.", "rounds"
    )
    keep: int = setting(
        3, Whole(1), "The number of snapshots to keep, the newest ones.", "snapshots"
    )
    snapshots_needed: bool = setting(
        False,
        Switch(),
        "Whether a snapshot that cannot be written ends training; else it is a warning, and the "
        "next one is the next attempt.",
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.patience is not None and not self.validate_every:
            raise SettingError(f"patience={self.patience} counts validations, and there are none")


@dataclass(frozen=True, kw_only=True)
class RunPlan(Schedule):
    """A run's plan, the same for all workers.  Training ends at the first end that is reached."""

    net: str = ""
    """The net's name, for events."""
    records: int | None = None
    """Records in the training data of all workers: one epoch."""
    batch_size: int | None = None
    """Records that one worker takes in one iteration."""
    goals: Mapping[str, Goal] = field(default_factory=dict)
    """Whether a larger or a smaller value of a metric is better, where that is known."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is None and self.seconds is None:
            raise SettingError("a plan needs an end: steps or seconds")


def steps_for(epochs: float, records: int, batch_size: int, workers: int) -> int:
    """Iterations in which all workers together see each record at least ``epochs`` times."""
    return ceil(epochs * records / (batch_size * workers))


Validate = Callable[[], tuple[int, dict[str, float]]]
"""Validates on this worker's records; returns their number and the mean metrics."""


@dataclass
class Hooks:
    """A worker's connections to its surroundings; each may be missing."""

    on_event: OnEvent | None = None
    """Called by worker 0 alone."""
    validate: Validate | None = None
    """Validates the learner's current weights; on all workers or on none."""
    metrics: Sequence[str] = ()
    """Further metrics by name, which are made of what ``validate`` returns on all workers."""
    interrupted: Callable[[], bool] | None = None
    """Called after each round; true means to write a snapshot and end."""
    store: Store | None = None
    """The store of snapshots; on all workers or on none."""
    resume: int | None = None
    """The round of the snapshot to continue from; the same on all workers."""
    identity: dict[str, Any] = field(default_factory=dict)
    """Further JSON that must be equal in a snapshot and in the run that resumes it."""
    own: bool = False
    """Whether this run itself wrote the snapshot; then its data is not compared."""
    shares: bool = False
    """Whether each worker has records of its own, not the same ones as all others."""
    layout: Layout | None = None
    """The layout of the learner's weights."""
    memory: HostMemory | None = None
    """The memory of this worker's host, where hosts come and go."""
    hosts: Sequence[int] = ()
    """The hosts of all workers, by rank."""
    newcomers: Callable[[], bool] | None = None
    """Called after each round where hosts come and go: whether workers move to others."""
    arrived: Callable[[int, float], None] | None = None
    """Called where slow workers are left behind: a round was trained, in so many seconds."""
    chance: float | None = None
    """The loss of a net that guesses, where that is known."""
    inputs: Callable[[], dict[str, tuple[float, float]]] | None = None
    """The least and the largest value of each input's last batch, for messages."""


Json = dict[str, Any]

_OF_A_WORKER = (
    "steps",
    "samples",
    "loss",
    "seconds_computing",
    "seconds_loading",
    "seconds_communicating",
    "seconds_waiting",
    "bytes_sent",
    "divergence",
    "clipped",
    "dropped_pushes",
)
_MEANS = tuple(name for name in _OF_A_WORKER if name.startswith("seconds_"))


@dataclass
class Tally:
    """Sums over rounds, and the results of validations."""

    total_samples: int = 0
    steps_over: int = 0
    """Steps of single workers that make no whole iteration yet: see `Rounds._keep_time`."""
    total_bytes_sent: int = 0
    """By all workers, for training: without the three that follow."""
    total_bytes_starting: int = 0
    total_bytes_validating: int = 0
    total_bytes_saving: int = 0
    """For snapshots."""
    total_seconds: float = 0.0
    computing: float = 0.0
    communicating: float = 0.0
    first_loss: float = inf
    best: float | None = None
    best_iteration: int = -1
    best_metrics: dict[str, float] = field(default_factory=dict)
    without_best: int = 0
    """Validations since the best one."""
    validated: int = -1
    """The iteration of the last validation."""
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def communication(self) -> float:
        """The share of the workers' time that communication took."""
        total = self.computing + self.communicating
        return self.communicating / total if total else 0.0

    def add(self, reports: Sequence[Json]) -> Json:
        """Add a round of all workers; returns its event's numbers."""
        count = len(reports)
        steps = sum(report["steps"] for report in reports)
        losses = (report["loss"] * report["steps"] for report in reports if report["steps"])
        event = {
            "steps": max(report["steps"] for report in reports),
            "samples": sum(report["samples"] for report in reports),
            "loss": sum(losses) / steps if steps else nan,
            "divergence": max(report["divergence"] for report in reports),
            "clipped": sum(report["clipped"] for report in reports),
            "dropped_pushes": sum(report["dropped_pushes"] for report in reports),
            "synchronised": count > 1 and reports[0]["synchronised"],
            **{name: sum(one[name] for one in reports) / count for name in _MEANS},
            "bytes_sent": sum(report["bytes_sent"] for report in reports),
            "workers": [{name: report[name] for name in _OF_A_WORKER} for report in reports],
        }
        self.total_samples += event["samples"]
        self.total_bytes_sent += sum(report["sent"] for report in reports)
        self.total_seconds = reports[0]["now"]
        self.computing += event["seconds_computing"]
        self.communicating += event["seconds_communicating"]
        if self.first_loss == inf and steps:
            self.first_loss = event["loss"]
        totals = ("total_samples", "total_bytes_sent", "total_seconds")
        return event | {name: getattr(self, name) for name in totals}

    def forget_best(self) -> None:
        """Forget the best validation, because its weights are gone."""
        self.best, self.without_best = None, 0
