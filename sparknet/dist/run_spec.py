"""RunSpec: what every worker of a run is given, whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparknet.dist.line import Link
from sparknet.dist.plan import Plan, steps_for
from sparknet.dist.portable import Portable
from sparknet.dist.strategies import Strategy, make_strategy


@dataclass(frozen=True)
class RunSpec:
    """The same for all workers: small, and of plain values.  Weights come from the driver."""

    link: Link
    """To the driver."""
    solver: Portable
    seed: int
    precision: str
    strategy: dict[str, Any]
    plan: dict[str, Any]
    epochs: float | None
    order_seed: int
    shuffle: bool
    validates: bool
    keeps: bool
    """Whether the driver has a store for snapshots."""
    folder: str | None
    """Where that store is, if workers reach it themselves."""
    identity: dict[str, Any]
    """What a snapshot must share with the run that it is for, beside workers and strategy."""
    ports: tuple[int, ...]
    deadline: float

    def make_strategy(self) -> Strategy:
        settings = dict(self.strategy)
        return make_strategy(settings.pop("name"), **settings)

    def make_plan(self, records: int, batch_size: int, workers: int) -> Plan:
        """With what is known only when the records are there."""
        settings = {**self.plan, "records": records, "batch_size": batch_size}
        if self.epochs is not None:
            settings["steps"] = steps_for(self.epochs, records, batch_size, workers)
        return Plan.of(settings)
