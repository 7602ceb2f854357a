"""DiLoCo: Nesterov's momentum over long rounds (Douillard et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from sparknet.native import NDArray
from sparknet.training.learner import Learner, Steps
from sparknet.training.strategies.outer import Outer


@final
@dataclass(frozen=True)
class DiLoCo(Outer):
    """v ← m v + g; x ← x - r (g + m v), with g = x - mean(x_i).

    Made for hundreds of rounds of about 500 steps: in a few rounds the outer momentum has no
    time to build up.
    """

    name: ClassVar[str] = "diloco"

    steps: int = 500
    outer_lr: float = 0.7
    outer_momentum: float = 0.9

    def check(self) -> None:
        super().check()
        self.need(self.steps >= 1, "steps", "at least 1")
        self.need(self.outer_lr > 0, "outer_lr", "more than 0")
        self.need(0 <= self.outer_momentum < 1, "outer_momentum", "in 0 … 1")

    def train(self, learner: Learner, most: int) -> Steps:
        return learner.step(min(self.steps, most))

    def move(
        self, weights: NDArray, center: NDArray, velocity: NDArray, rate: float, workers: int
    ) -> None:
        velocity.axpby(1.0, weights, self.outer_momentum)
        weights.axpy(self.outer_momentum, velocity)
        weights.axpby(1.0, center, -self.outer_lr)
