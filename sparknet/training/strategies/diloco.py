"""DiLoCo: Nesterov's momentum over long rounds (Douillard et al., 2023), and its streaming form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, final

from sparknet.comm.collectives import Comm
from sparknet.comm.grid import bounds
from sparknet.errors import SettingError
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps
from sparknet.training.strategies.averaging import SharedModel, settle_momentum
from sparknet.training.strategies.outer import Moving, Outer
from sparknet.training.strategies.strategy import (
    State,
    average_statistics,
    clear_statistics,
    put_statistics,
    take_statistics,
)


@dataclass
class Streamed(Moving):
    """x, the outer momentum, and the part whose mean is under way."""

    mean: NDArray | None = field(default=None, metadata={"transient": True})
    ends: Callable[[], None] | None = field(default=None, metadata={"transient": True})
    """Waits for the mean."""


@final
@dataclass(frozen=True)
class DiLoCo(Outer):
    """v ← m v + g; x ← x - r (g + m v), with g = x - mean(x_i).

    Made for hundreds of rounds of about 500 steps: in a few rounds the outer momentum has no
    time to build up.

    With ``fragments`` or ``overlap`` it is Streaming DiLoCo (Douillard et al., 2025).  Parts of the
    weights are synchronised in turn, one in a round of steps / fragments steps, so that each
    message is shorter.  A mean that is overlapped is of the weights ``overlap`` steps before the
    end of the round, when x_i ← mixing x_i + (1 - mixing) x.  So nothing is under way between two
    rounds.  The model is the mean of the workers' weights.
    """

    name: ClassVar[str] = "diloco"

    steps: int = 500
    outer_lr: float = 0.7
    outer_momentum: float = 0.9
    fragments: int = 1
    """Parts of the weights, each of which is synchronised after ``steps`` steps."""
    overlap: int = 0
    """Steps that workers make while a mean is taken."""
    mixing: float = 0.5
    """The share of its own weights that a worker keeps after a mean that was overlapped."""

    def check(self) -> None:
        super().check()
        self.need(self.steps >= 1, "steps", "at least 1")
        self.need(self.outer_lr > 0, "outer_lr", "more than 0")
        self.need(0 <= self.outer_momentum < 1, "outer_momentum", "in 0 … 1")
        self.need(1 <= self.fragments <= self.steps, "fragments", f"in 1 … steps, {self.steps}")
        most = self.steps // self.fragments
        self.need(0 <= self.overlap <= most, "overlap", f"in 0 … steps / fragments, {most}")
        self.need(0 <= self.mixing < 1, "mixing", "in 0 … 1")

    @property
    def parts(self) -> int:
        return self.fragments

    @property
    def streams(self) -> bool:
        return self.fragments > 1 or self.overlap > 0

    def start(self, learner: Learner, comm: Comm) -> Streamed:
        moving = super().start(learner, comm)
        if self.fragments > moving.center.size:
            raise SettingError(
                f"DiLoCo: fragments={self.fragments} is more than the net's "
                f"{moving.center.size} weights"
            )
        return Streamed(center=moving.center, velocity=moving.velocity)

    def train(self, learner: Learner, most: int) -> Steps:
        return learner.step(min(self.steps, most))

    def train_among(self, learner: Learner, comm: Comm, state: SharedModel, most: int) -> Steps:
        if not self.streams:
            return self.train(learner, most)
        assert isinstance(state, Streamed)
        part = state.round % self.fragments
        begin, end = bounds(self.steps, self.fragments)[part]
        steps = min(end - begin, most)
        if not self.overlap or comm.size == 1:
            return learner.step(steps)
        late = min(self.overlap, steps)
        done = learner.step(steps - late)
        state.mean = self._changed(learner, state)
        state.ends = comm.begin_mean(state.mean, self.codec, part)
        return done + learner.step(late)

    def synchronise(self, learner: Learner, comm: Comm, state: SharedModel, steps: int) -> None:
        if not self.streams:
            super().synchronise(learner, comm, state, steps)
            return
        assert isinstance(state, Streamed)
        begin, end = self._span(learner, state)
        center, velocity = state.center[begin:end], state.velocity[begin:end]
        gradient = self._mean(learner, comm, state)
        average_statistics(learner, comm)
        saved = take_statistics(learner.weights, learner.statistics)
        if self.codec is None:
            gradient.axpby(1.0, center, -1.0)
        else:
            gradient.scale(-1.0)
        clear_statistics(gradient, self._statistics(learner, state))
        self.move(gradient, center, velocity, learner.last_rate, comm.size)
        center.copy_from(gradient)
        mine = learner.weights[begin:end]
        if self.overlap:
            mine.axpby(1.0 - self.mixing, center, self.mixing)
        else:
            mine.copy_from(center)
        for buffer in (learner.weights, state.center):
            put_statistics(buffer, learner.statistics, saved)
        settle_momentum(learner, comm, self.momentum, (begin, end))

    def move(
        self, weights: NDArray, center: NDArray, velocity: NDArray, rate: float, workers: int
    ) -> None:
        velocity.axpby(1.0, weights, self.outer_momentum)
        weights.axpy(self.outer_momentum, velocity)
        weights.axpby(1.0, center, -self.outer_lr)

    def keeps_apart(self, state: State) -> bool:
        return self.streams

    def model(self, learner: Learner, comm: Comm, state: State) -> NDArray:
        if not self.streams:
            return learner.weights
        mean = learner.weights.copy()
        comm.mean(mean)
        return mean

    def finish(self, learner: Learner, comm: Comm, state: State) -> None:
        if self.streams:
            comm.mean(learner.weights)

    # -- one part ------------------------------------------------------------------------

    def _span(self, learner: Learner, state: SharedModel) -> tuple[int, int]:
        """Return the span of this round's part."""
        return bounds(learner.weights.size, self.fragments)[state.round % self.fragments]

    def _statistics(self, learner: Learner, state: SharedModel) -> list[tuple[int, int]]:
        """Return the statistics in this round's part, counted from its beginning."""
        begin, end = self._span(learner, state)
        overlaps = [(max(b, begin), min(e, end)) for b, e in learner.statistics]
        return [(b - begin, e - begin) for b, e in overlaps if b < e]

    def _changed(self, learner: Learner, state: SharedModel) -> NDArray:
        """Return what this worker sends: its weights, or for a codec the difference to x."""
        begin, end = self._span(learner, state)
        changed: NDArray = learner.weights[begin:end].copy()
        if self.codec is not None:
            changed.subtract(state.center[begin:end])
            clear_statistics(changed, self._statistics(learner, state))
        return changed

    def _mean(self, learner: Learner, comm: Comm, state: Streamed) -> NDArray:
        """Return the mean of what all workers send."""
        part = state.round % self.fragments
        if not self.overlap:
            mean = self._changed(learner, state)
            comm.mean(mean, codec=self.codec, part=part)
            return mean
        assert state.ends is not None
        assert state.mean is not None
        ends, state.ends = state.ends, None
        ends()
        return state.mean
