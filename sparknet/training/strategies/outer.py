"""Optimizers over rounds, whose gradient is the change of a round: BMUF and SlowMo."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, final

from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps
from sparknet.training.strategies.averaging import (
    InnerMomentum,
    Periodic,
    SharedModel,
    mean_weights,
    settle_momentum,
)
from sparknet.training.strategies.strategy import clear_statistics, put_statistics, take_statistics


@dataclass
class Moving(SharedModel):
    """x, and the outer momentum."""

    velocity: NDArray


@dataclass(frozen=True, kw_only=True)
class Outer(Periodic):
    """x ← move(x, g) with g = x - mean(x_i)."""

    def start(self, learner: Learner, comm: Comm) -> Moving:
        self.check_learner(learner)
        weights = learner.weights
        return Moving(center=weights.copy(), velocity=NDArray.zeros(weights.shape))

    def synchronise(self, learner: Learner, comm: Comm, state: SharedModel, steps: int) -> None:
        assert isinstance(state, Moving)
        weights = learner.weights
        mean_weights(learner, comm, state.center, self.codec)
        saved = take_statistics(weights, learner.statistics)
        weights.axpby(1.0, state.center, -1.0)
        clear_statistics(weights, learner.statistics)
        self.move(weights, state.center, state.velocity, learner.last_rate, comm.size)
        put_statistics(weights, learner.statistics, saved)
        state.center.copy_from(weights)
        settle_momentum(learner, comm, self.momentum)

    @abstractmethod
    def move(
        self, weights: NDArray, center: NDArray, velocity: NDArray, rate: float, workers: int
    ) -> None:
        """Replace g in ``weights`` by the next x, and update ``velocity``."""


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
