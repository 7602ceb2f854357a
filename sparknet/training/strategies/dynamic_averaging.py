"""DynamicAveraging: synchronise only when a worker has moved far (Kamp et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps
from sparknet.training.strategies.averaging import (
    Periodic,
    SharedModel,
    mean_weights,
    settle_momentum,
)
from sparknet.training.strategies.strategy import State, distance_to


@dataclass
class Apart(SharedModel):
    """x, and the iterations since the last synchronisation."""

    steps: int = 0


@final
@dataclass(frozen=True)
class DynamicAveraging(Periodic):
    """Averages as `Averaging` does, when some ‖x_i - x‖ passes a threshold, and at the end.

    Each check sends one number.  ``relative`` measures ‖x_i - x‖₂ / ‖x‖₂, which depends neither
    on the size of the net nor on its scale; ``absolute`` the sum of absolute differences.
    """

    name: ClassVar[str] = "dynamic"

    threshold: float = 0.02
    check_every: int = 10
    sync_at_least_every: int | None = None
    """Iterations after which workers synchronise, however near to each other they are."""
    measure: Literal["relative", "absolute"] = "relative"

    def check(self) -> None:
        super().check()
        self.need(self.threshold >= 0, "threshold", "at least 0")
        self.need(self.check_every >= 1, "check_every", "at least 1")
        every = self.sync_at_least_every
        self.need(every is None or every >= 1, "sync_at_least_every", "at least 1, or None")
        self.need(self.measure in ("relative", "absolute"), "measure", "relative or absolute")

    def start(self, learner: Learner, comm: Comm) -> Apart:
        self.check_learner(learner)
        return Apart(center=learner.weights.copy())

    def train(self, learner: Learner, most: int) -> Steps:
        return learner.step(min(self.check_every, most))

    def drift(self, learner: Learner, state: SharedModel) -> float:
        if self.measure == "absolute":
            return distance_to(learner, state.center)
        return super().drift(learner, state)

    def due(self, comm: Comm, state: SharedModel, steps: int, drift: float) -> bool:
        assert isinstance(state, Apart)
        state.steps += steps
        every = self.sync_at_least_every
        return comm.max(drift) > self.threshold or (every is not None and state.steps >= every)

    def synchronise(self, learner: Learner, comm: Comm, state: SharedModel, steps: int) -> None:
        assert isinstance(state, Apart)
        mean_weights(learner, comm, state.center, self.codec)
        settle_momentum(learner, comm, self.momentum)
        state.center.copy_from(learner.weights)
        state.steps = 0

    def regroup(self, learner: Learner, comm: Comm, state: State, before: int) -> None:
        """Note that all have the mean of the weights, as after a synchronisation."""
        assert isinstance(state, Apart)
        state.center.copy_from(learner.weights)
        state.steps = 0

    def keeps_apart(self, state: State) -> bool:
        assert isinstance(state, Apart)
        return state.steps > 0

    def model(self, learner: Learner, comm: Comm, state: State) -> NDArray:
        assert isinstance(state, Apart)
        if not state.steps:
            return learner.weights
        mean = learner.weights.copy()
        comm.mean(mean)
        return mean

    def finish(self, learner: Learner, comm: Comm, state: State) -> None:
        assert isinstance(state, Apart)
        if state.steps:
            self.synchronise(learner, comm, state, 0)
