"""Outer: the base of optimizers over rounds, whose gradient is the change of a round."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.training.learner import Learner
from sparknet.training.strategies.periodic import (
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
