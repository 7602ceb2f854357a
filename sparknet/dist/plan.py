"""Plan: when training ends, what is looked at on the way, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from math import ceil, inf
from typing import Any, Literal

from sparknet.dist.events import OnEvent
from sparknet.dist.store import Store
from sparknet.errors import SettingError
from sparknet.weights import Layout

ENDLESS = 1 << 62


@dataclass(frozen=True)
class Plan:
    """The same for all workers.  Training ends with what comes first."""

    steps: int | None = None
    """The solver's iteration at which it ends."""
    seconds: float | None = None
    """The time after which the round at work is the last one."""
    validate_every: int = 0
    """Rounds; 0: never."""
    metric: str | None = None
    """Of validation, by which the best is told; the first one unless given."""
    goal: Literal["max", "min"] | None = None
    """Whether more is better; unless given, less is better of what is called a loss."""
    patience: int | None = None
    """Validations without a new best after which training ends; then the best weights stay."""
    snapshot_every: int = 0
    """Rounds; 0: only when interrupted."""
    keep: int = 3
    """Newest snapshots that stay."""
    net: str = ""
    """Its name, for those who watch."""
    diverged: float = 20.0
    """A loss so many times the first round's (or 1, if that is more) ends training."""
    records: int | None = None
    """In the training data of all workers: what an epoch is."""
    batch_size: int | None = None
    """Records that one worker takes in one iteration."""

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise SettingError("a plan needs an end: steps or seconds")
        least = dict.fromkeys(("steps", "validate_every", "snapshot_every"), 0)
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
        """From JSON."""
        unknown = set(settings) - {field.name for field in fields(cls)}
        if unknown:
            raise SettingError(f"a plan has no '{min(unknown)}'")
        return cls(**settings)


def _is_within(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 < value < inf


def steps_for(epochs: float, records: int, batch_size: int, workers: int) -> int:
    """Iterations in which all workers together see each record so many times, at least."""
    return ceil(epochs * records / (batch_size * workers))


Validate = Callable[[], tuple[int, dict[str, float]]]
"""This worker's part of the validation data: how many records, and the means over them."""


@dataclass
class Hooks:
    """What a worker is given to act upon the world; each part may be missing."""

    on_event: OnEvent | None = None
    """Called by worker 0 alone."""
    validate: Validate | None = None
    """With the learner's weights as they are; on all workers or on none."""
    interrupted: Callable[[], bool] | None = None
    """Asked after each round: whether to snapshot and end."""
    store: Store | None = None
    """Where snapshots go; on all workers or on none."""
    resume: int | None = None
    """The round of the snapshot to go on from: the same on all workers."""
    identity: dict[str, Any] = field(default_factory=dict)
    """What else, as JSON, a snapshot must share with the run that it is for."""
    own: bool = False
    """Whether the snapshot to go on from is this very run's: then its data is not compared."""
    layout: Layout | None = None
    """Of the learner's weights."""
