"""BMUF: blockwise model-update filtering (Chen and Huo, 2016)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from sparknet.native import NDArray
from sparknet.training.learner import Learner, Steps
from sparknet.training.strategies.outer import Outer
from sparknet.training.strategies.periodic import InnerMomentum


@final
@dataclass(frozen=True)
class BMUF(Outer):
    """Δ ← η Δ - ζ (x - mean(x_i)); x ← x + Δ."""

    name: ClassVar[str] = "bmuf"

    steps: int = 50
    block_momentum: float | None = None
    """η: 1 - 1/K unless given."""
    block_lr: float = 1.0
    """ζ"""
    momentum: InnerMomentum = field(default="reset", kw_only=True)

    def check(self) -> None:
        super().check()
        self.need(self.steps >= 1, "steps", "at least 1")
        eta = self.block_momentum
        self.need(eta is None or 0 <= eta < 1, "block_momentum", "in 0 … 1, or None")
        self.need(self.block_lr > 0, "block_lr", "more than 0")

    def train(self, learner: Learner, most: int) -> Steps:
        return learner.step(min(self.steps, most))

    def move(
        self, weights: NDArray, center: NDArray, velocity: NDArray, rate: float, workers: int
    ) -> None:
        eta = self.block_momentum if self.block_momentum is not None else 1 - 1 / workers
        velocity.axpby(-self.block_lr, weights, eta)
        weights.copy_from(center).add(velocity)
