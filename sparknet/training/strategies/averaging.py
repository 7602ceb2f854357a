"""Averaging: SparkNet's own (Moritz, Nishihara, Stoica, Jordan, 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

from sparknet.comm.codecs import Codec
from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.training.learner import Learner, Steps, repeat
from sparknet.training.strategies.periodic import (
    Periodic,
    SharedModel,
    mean_weights,
    settle_momentum,
)
from sparknet.training.strategies.strategy import (
    average_statistics,
    clear_statistics,
    put_statistics,
    take_statistics,
)


@final
@dataclass(frozen=True)
class Averaging(Periodic):
    """Averages the weights, x ← Σ x_i / K, after a number of steps or after a time.

    Where workers made different numbers of steps, the mean is normalised as in FedNova (Wang et
    al., 2020), so that fast workers do not pull towards their own data:
    x ← x - (Σ a_i / K) Σ (x - x_i) / (K a_i), with a_i what τ_i steps of momentum amount to.
    """

    name: ClassVar[str] = "averaging"

    steps: int = 10
    seconds: float | None = None
    """Ends rounds after this time instead."""

    def check(self) -> None:
        super().check()
        self.need(self.steps >= 1, "steps", "at least 1")
        self.need(self.seconds is None or self.seconds > 0, "seconds", "more than 0")

    @property
    def needs_state(self) -> bool:
        return super().needs_state or self.seconds is not None

    def train(self, learner: Learner, most: int) -> Steps:
        if (seconds := self.seconds) is None:
            return learner.step(min(self.steps, most))
        return repeat(partial(learner.step, 1), most, lambda done: done.seconds >= seconds)

    def synchronise(self, learner: Learner, comm: Comm, state: SharedModel, steps: int) -> None:
        counts = [steps] * comm.size
        if self.seconds is not None:
            counts = [int(count) for count in comm.gather(steps)]
        if len(set(counts)) == 1:
            mean_weights(learner, comm, state.center, self.codec)
        else:
            mean_unequal(learner, comm, state.center, counts, self.codec)
        settle_momentum(learner, comm, self.momentum)
        state.center.copy_from(learner.weights)


def mean_unequal(
    learner: Learner, comm: Comm, center: NDArray, counts: list[int], codec: Codec | None
) -> None:
    """FedNova's mean; the iteration becomes the mean of the workers'."""
    efforts = [effort(count, learner.momentum) for count in counts]
    average_statistics(learner, comm)
    saved = take_statistics(learner.weights, learner.statistics)
    learner.weights.subtract(center).scale(1 / efforts[comm.rank])
    clear_statistics(learner.weights, learner.statistics)
    comm.mean(learner.weights, codec=codec)
    learner.weights.scale(sum(efforts) / len(efforts)).add(center)
    put_statistics(learner.weights, learner.statistics, saved)
    learner.seek(learner.iter - counts[comm.rank] + round(sum(counts) / len(counts)))


def effort(steps: int, momentum: float) -> float:
    """How far steps with momentum go, in units of one gradient: a_i."""
    if not momentum:
        return float(steps)
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
