"""AllReduce: averages the workers' gradients in each iteration, as BigDL (Dai et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import ClassVar, final

from sparknet.comm.codecs import CODES, MEAN_ERRORS, OWN_ERRORS, Codec
from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps, repeat
from sparknet.training.strategies.strategy import (
    Round,
    RoundMeter,
    State,
    Strategy,
    average_statistics,
    put_statistics,
    take_statistics,
)


@final
@dataclass(frozen=True)
class AllReduce(Strategy):
    """Computes with K workers and batches of b what one worker computes with batches of K b.

    Each worker updates its own slice of the weights and of the solver's history: the gradient
    comes in (reduce-scatter), the weights go out (all-gather).  A codec sends gradients, and the
    changes of the weights in place of the weights, in fewer bytes.
    """

    name: ClassVar[str] = "allreduce"
    slices_histories: ClassVar[bool] = True

    steps: int = 10
    """Iterations in a round.  It sets how often events come; the result does not depend on it."""
    codec: Codec | None = None

    def check(self) -> None:
        self.need(self.steps >= 1, "steps", "at least 1")
        self.need(not self.unequal, "unequal", "0, as gradients alone are averaged")
        names = ", ".join(CODES)
        self.need(self.codec is None or self.codec in CODES, "codec", f"one of {names}, or None")

    def extras(self, learner: Learner, comm: Comm) -> dict[str, NDArray]:
        if self.codec is None or comm.size == 1:
            return {}
        own, mean = comm.feedback(self.codec, learner.weights.size)
        return {OWN_ERRORS: own, MEAN_ERRORS: mean}

    @property
    def needs_state(self) -> bool:
        return True  # each worker updates a part of them

    def start(self, learner: Learner, comm: Comm) -> State:
        return State()

    def round(self, learner: Learner, comm: Comm, state: State, most: int) -> Round:
        meter, steps = RoundMeter(comm), min(self.steps, most)
        if comm.size == 1:
            done = learner.step(steps)
        else:
            done = repeat(partial(_step, learner, comm, self.codec), steps)
            # BatchNorm's sums are linear in the data: averaging once in a round is enough.
            average_statistics(learner, comm)
        state.round += 1
        return meter.round(state.round, done, 0.0)

    def finish(self, learner: Learner, comm: Comm, state: State) -> None:
        for history in learner.histories:
            comm.all_gather(history)


def _step(learner: Learner, comm: Comm, codec: Codec | None) -> Steps:
    done = learner.compute_gradient()
    comm.reduce_scatter_mean(learner.gradients, codec)
    begin, end = comm.bounds(learner.weights.size)[comm.rank]

    def norm() -> float:
        return sqrt(comm.sum(learner.gradients[begin:end].norm2() ** 2))

    saved = take_statistics(learner.weights, learner.statistics)
    before = learner.weights[begin:end].copy() if codec else None
    learner.apply_update(begin, end, norm)
    if before is None:
        comm.all_gather(learner.weights)
    else:
        _send_changes(learner, comm, codec, before)
    put_statistics(learner.weights, learner.statistics, saved)
    return done


def _send_changes(learner: Learner, comm: Comm, codec: Codec | None, before: NDArray) -> None:
    """Let all move by what the owners' changes are when they are coded, the owners too."""
    weights, changes = learner.weights, NDArray.zeros(learner.weights.shape)
    begin, end = comm.bounds(weights.size)[comm.rank]
    changes[begin:end].copy_from(weights[begin:end]).subtract(before)
    weights[begin:end].copy_from(before)
    comm.all_gather(changes, codec)
    weights.add(changes)
