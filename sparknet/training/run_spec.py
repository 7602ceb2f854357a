"""RunSpec: the description of a run that every worker gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparknet.loaders.preprocessing import Preprocessing
from sparknet.training.line import Link
from sparknet.training.plan import Plan, steps_for
from sparknet.training.portable import Portable
from sparknet.training.strategies import Strategy, make_strategy


@dataclass(frozen=True)
class RunSpec:
    """A run's settings, the same for all workers: small, without weights."""

    link: Link
    """The link to the driver."""
    solver: Portable
    seed: int
    precision: str
    backend: str
    strategy: dict[str, Any]
    plan: dict[str, Any]
    epochs: float | None
    order_seed: int
    shuffle: bool
    validates: bool
    keeps: bool
    """Whether the driver has a store for snapshots."""
    folder: str | None
    """The folder of that store, if workers reach it themselves."""
    identity: dict[str, Any]
    """What must be equal in a snapshot to resume it, beside workers and strategy."""
    ports: tuple[int, ...]
    deadline: float
    metrics: tuple[str, ...] = ()
    """Further metrics of validation."""
    preprocessing: Preprocessing | None = None
    """What was asked for images."""

    def make_strategy(self) -> Strategy:
        settings = dict(self.strategy)
        return make_strategy(settings.pop("name"), **settings)

    def make_plan(self, records: int, batch_size: int, workers: int) -> Plan:
        """The plan, completed by what is known after the records are read."""
        settings = {**self.plan, "records": records, "batch_size": batch_size}
        if self.epochs is not None:
            settings["steps"] = steps_for(self.epochs, records, batch_size, workers)
        return Plan.of(settings)
