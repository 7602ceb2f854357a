"""ElasticAveraging: workers on springs around a center (Zhang, Choromanska, LeCun, 2015)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps
from sparknet.training.strategies.averaging import Periodic, SharedModel, settle_momentum
from sparknet.training.strategies.strategy import State, put_statistics, take_statistics


@dataclass
class Center(SharedModel):
    """The center that workers are pulled to, and a buffer for their mean."""

    mean: NDArray = field(metadata={"transient": True}, kw_only=True)


@final
@dataclass(frozen=True)
class ElasticAveraging(Periodic):
    """x_i ← x_i - α(x_i - x); x ← x + α Σ(x_i - x).  The center x is the model."""

    name: ClassVar[str] = "elastic"

    alpha: float | None = None
    """0.9 / K unless given."""
    every: int = 10

    def check(self) -> None:
        super().check()
        self.need(
            self.codec is None, "codec", "None: workers stay apart, nothing that is sent shrinks"
        )
        self.need(self.alpha is None or 0 < self.alpha <= 1, "alpha", "in 0 … 1, or None")
        self.need(self.every >= 1, "every", "at least 1")

    def start(self, learner: Learner, comm: Comm) -> Center:
        self.check_learner(learner)
        weights = learner.weights
        return Center(center=weights.copy(), mean=NDArray.empty(weights.shape))

    def regroup(self, learner: Learner, comm: Comm, state: State, before: int) -> None:
        assert isinstance(state, Center)
        super().regroup(learner, comm, state, before)
        if comm.size == 1:  # which trains the model itself
            learner.weights.copy_from(state.center)

    def keeps_apart(self, state: State) -> bool:
        return True

    def train(self, learner: Learner, most: int) -> Steps:
        return learner.step(min(self.every, most))

    def synchronise(self, learner: Learner, comm: Comm, state: SharedModel, steps: int) -> None:
        assert isinstance(state, Center)
        alpha = self.alpha if self.alpha is not None else 0.9 / comm.size
        pull = alpha * comm.size
        comm.mean(state.mean.copy_from(learner.weights))
        learner.weights.axpby(alpha, state.center, 1 - alpha)
        state.center.axpby(pull, state.mean, 1 - pull)
        saved = take_statistics(state.mean, learner.statistics)
        for buffer in (learner.weights, state.center):
            put_statistics(buffer, learner.statistics, saved)
        settle_momentum(learner, comm, self.momentum)

    def model(self, learner: Learner, comm: Comm, state: State) -> NDArray:
        assert isinstance(state, Center)
        return state.center

    def finish(self, learner: Learner, comm: Comm, state: State) -> None:
        assert isinstance(state, Center)
        learner.weights.copy_from(state.center)
