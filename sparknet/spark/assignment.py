"""Assignment: what the tasks of a training job are sent.  Small, and of plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparknet.dist.plan import Plan, steps_for
from sparknet.dist.strategies import Strategy, make_strategy
from sparknet.spark.portable import Portable

Shape = tuple[int | None, ...]
Address = tuple[str, int]


@dataclass(frozen=True)
class Assignment:
    """The same for all workers.  Weights come over the line to the driver."""

    run: str
    driver: Address
    secret: bytes
    solver: Portable
    seed: int
    mapping: dict[str, str]
    shapes: dict[str, Shape]
    strategy: dict[str, Any]
    plan: dict[str, Any]
    epochs: float | None
    order_seed: int
    shuffle: bool
    validates: bool
    keeps: bool
    """Whether the driver has a store for snapshots."""
    identity: dict[str, Any]
    """What a snapshot must share with the run that it is for, beside workers and strategy."""
    ports: tuple[int, ...]
    deadline: float
    precision: str
    seal: str
    """What protects the bytes between workers, and between them and the driver."""

    def make_strategy(self) -> Strategy:
        settings = dict(self.strategy)
        return make_strategy(settings.pop("name"), **settings)

    def make_plan(self, records: int, batch_size: int, workers: int) -> Plan:
        """With what is known only when the records are there."""
        settings = {**self.plan, "records": records, "batch_size": batch_size}
        if self.epochs is not None:
            settings["steps"] = steps_for(self.epochs, records, batch_size, workers)
        return Plan.of(settings)
