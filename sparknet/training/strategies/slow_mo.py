"""SlowMo: momentum over rounds (Wang, Tantia, Ballas, Rabbat, 2020)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from sparknet.native import NDArray
from sparknet.training.learner import Learner, Steps
from sparknet.training.strategies.outer import Outer
from sparknet.training.strategies.periodic import InnerMomentum

PUBLISHED = ((16, 0.6), (8, 0.5), (4, 0.2), (0, 0.0))
"""Pairs of a number of workers and the beta from that number on."""


@final
@dataclass(frozen=True)
class SlowMo(Outer):
    """u ← β u + (x - mean(x_i)) / γ; x ← x - α γ u, with γ the solver's learning rate."""

    name: ClassVar[str] = "slowmo"

    steps: int = 10
    beta: float | None = None
    """As published unless given: 0, 0.2, 0.5, 0.6 for fewer than 4, from 4, 8, 16 workers on."""
    alpha: float = 1.0
    momentum: InnerMomentum = field(default="average", kw_only=True)

    def check(self) -> None:
        super().check()
        self.need(self.steps >= 1, "steps", "at least 1")
        self.need(self.beta is None or 0 <= self.beta < 1, "beta", "in 0 … 1, or None")
        self.need(self.alpha > 0, "alpha", "more than 0")

    def train(self, learner: Learner, most: int) -> Steps:
        return learner.step(min(self.steps, most))

    def move(
        self, weights: NDArray, center: NDArray, velocity: NDArray, rate: float, workers: int
    ) -> None:
        if not rate:  # only old momentum changed the weights
            weights.axpby(1.0, center, -1.0)
            return
        velocity.axpby(1 / rate, weights, self.beta_for(workers))
        weights.copy_from(center).axpy(-self.alpha * rate, velocity)

    def beta_for(self, workers: int) -> float:
        if self.beta is not None:
            return self.beta
        return next(beta for least, beta in PUBLISHED if workers >= least)
