"""Plan: when training ends, when it validates, and which snapshots it writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from math import ceil, inf
from typing import Any, Literal

from sparknet.errors import SettingError
from sparknet.training.events import OnEvent
from sparknet.training.store import Store
from sparknet.weights import Layout

ENDLESS = 1 << 62


@dataclass(frozen=True)
class Plan:
    """A run's plan, the same for all workers.  Training ends at the first end that is reached."""

    steps: int | None = None
    """The solver's iteration at which training ends."""
    seconds: float | None = None
    """The time after which the current round is the last one."""
    validate_every: int = 0
    """Rounds between validations; 0: never."""
    metric: str | None = None
    """The metric of validation that decides which is the best; the first one unless given."""
    goal: Literal["max", "min"] | None = None
    """Whether more or less is better; unless given, "min" for a metric that is called a loss."""
    patience: int | None = None
    """Validations without a new best after which training ends, with the best weights."""
    histograms_every: int = 0
    """Rounds between looks at each layer's weights and gradients; 0: never."""
    snapshot_every: int = 0
    """Rounds between snapshots; 0: only when interrupted."""
    keep: int = 3
    """The number of newest snapshots that stay."""
    net: str = ""
    """The net's name, for events."""
    diverged: float = 20.0
    """Training fails when the loss is this many times the first round's (at least 1)."""
    records: int | None = None
    """Records in the training data of all workers: one epoch."""
    batch_size: int | None = None
    """Records that one worker takes in one iteration."""

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise SettingError("a plan needs an end: steps or seconds")
        least = dict.fromkeys(("steps", "validate_every", "histograms_every", "snapshot_every"), 0)
        least |= dict.fromkeys(("patience", "keep", "diverged", "records", "batch_size"), 1)
        for name, bound in least.items():
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, (int, float) if name == "diverged" else int):
                raise SettingError(f"{name} must be a whole number, not {value!r}")
            if not value >= bound:
                raise SettingError(f"{name} must be at least {bound}, not {value!r}")
        if self.goal not in (None, "max", "min"):
            raise SettingError(f"goal must be 'max' or 'min', not {self.goal!r}")
        if self.patience is not None and not self.validate_every:
            raise SettingError(f"patience={self.patience} counts validations, and there are none")
        if self.seconds is not None and not _is_within(self.seconds):
            raise SettingError(f"seconds must be more than 0, not {self.seconds!r}")

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Plan:
        """A plan from JSON."""
        unknown = set(settings) - {field.name for field in fields(cls)}
        if unknown:
            raise SettingError(f"a plan has no '{min(unknown)}'")
        return cls(**settings)


def _is_within(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 < value < inf


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
    layout: Layout | None = None
    """The layout of the learner's weights."""
    inputs: Callable[[], dict[str, tuple[float, float]]] | None = None
    """The least and the largest value of each input's last batch, for messages."""
