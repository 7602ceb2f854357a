"""Averaging: SparkNet's own (Moritz et al., 2016); Periodic: the base of those with rounds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, final

from sparknet.comm.codecs import CODES, MEAN_ERRORS, OWN_ERRORS, Codec, of_parts
from sparknet.comm.collectives import Comm
from sparknet.comm.grid import bounds
from sparknet.errors import SettingError
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps, repeat
from sparknet.training.strategies.strategy import (
    Round,
    RoundMeter,
    State,
    Strategy,
    average_statistics,
    clear_statistics,
    drift_from,
    put_statistics,
    take_statistics,
)
from sparknet.weights import Span

InnerMomentum = Literal["keep", "average", "reset"]


@dataclass
class SharedModel(State):
    """The weights after the last synchronisation: x."""

    center: NDArray


@dataclass(frozen=True, kw_only=True)
class Periodic(Strategy):
    """Rounds of local training, each with a synchronisation at its end."""

    leaves_behind: ClassVar[bool] = True

    momentum: InnerMomentum = "keep"
    """What happens to the solvers' own momentum at a synchronisation."""
    codec: Codec | None = None
    """Sends the differences to x in fewer bytes."""

    def check(self) -> None:
        modes = ("keep", "average", "reset")
        self.need(self.momentum in modes, "momentum", "keep, average or reset")
        names = ", ".join(CODES)
        self.need(self.codec is None or self.codec in CODES, "codec", f"one of {names}, or None")

    @property
    def needs_state(self) -> bool:
        return super().needs_state or self.momentum != "keep"

    def extras(self, learner: Learner, comm: Comm) -> dict[str, NDArray]:
        if self.codec is None or comm.size == 1:
            return {}
        names = (of_parts(OWN_ERRORS, self.parts), of_parts(MEAN_ERRORS, self.parts))
        arrays: dict[str, NDArray] = {}
        for part, (begin, end) in enumerate(bounds(learner.weights.size, self.parts)):
            errors = comm.feedback(self.codec, end - begin, part)
            arrays |= {names[part]: one for names, one in zip(names, errors, strict=True)}
        return arrays

    def regroup(self, learner: Learner, comm: Comm, state: State, before: int) -> None:
        assert isinstance(state, SharedModel)
        if before == 1:  # one worker moves no center
            state.center.copy_from(learner.weights)

    def check_learner(self, learner: Learner) -> None:
        """Refuse settings that this solver cannot follow."""
        if self.momentum == "reset" and not learner.momentum:
            raise SettingError(
                f"{type(self).__name__}: only the momentum of SGD and Nesterov can be reset: "
                "set momentum to keep or average"
            )

    def start(self, learner: Learner, comm: Comm) -> SharedModel:
        self.check_learner(learner)
        return SharedModel(center=learner.weights.copy())

    @final
    def round(self, learner: Learner, comm: Comm, state: State, most: int) -> Round:
        assert isinstance(state, SharedModel)
        meter, divergence, due = RoundMeter(comm), 0.0, False
        done = state.trained(lambda: self.train_among(learner, comm, state, most))
        if comm.size > 1:
            divergence = self.drift(learner, state)
            due = self.due(comm, state, done.steps, divergence)
            if due:
                self.synchronise(learner, comm, state, done.steps)
        state.round += 1
        return replace(meter.round(state.round, done, divergence), synchronised=due)

    @abstractmethod
    def train(self, learner: Learner, most: int) -> Steps:
        """Train locally."""

    def train_among(self, learner: Learner, comm: Comm, state: SharedModel, most: int) -> Steps:
        """Train in a round; a strategy that sends meanwhile does it otherwise."""
        return self.train(learner, most)

    def drift(self, learner: Learner, state: SharedModel) -> float:
        """Return how far this worker's weights are from the center: ‖x_i - x‖₂ / ‖x‖₂."""
        return drift_from(learner, state.center)

    def due(self, comm: Comm, state: SharedModel, steps: int, drift: float) -> bool:
        """Return whether the workers synchronise after ``steps`` steps; the same on all workers."""
        return True

    @abstractmethod
    def synchronise(self, learner: Learner, comm: Comm, state: SharedModel, steps: int) -> None:
        """Bring the workers together, of which this one has made ``steps`` steps."""


def mean_weights(learner: Learner, comm: Comm, center: NDArray, codec: Codec | None) -> None:
    """Average the weights of all learners.

    A codec codes the differences to the center, never raw weights or BatchNorm's statistics.
    """
    if codec is None:
        comm.mean(learner.weights)
        return
    average_statistics(learner, comm)
    saved = take_statistics(learner.weights, learner.statistics)
    learner.weights.subtract(center)
    clear_statistics(learner.weights, learner.statistics)
    comm.mean(learner.weights, codec=codec)
    learner.weights.add(center)
    put_statistics(learner.weights, learner.statistics, saved)


def settle_momentum(
    learner: Learner, comm: Comm, momentum: InnerMomentum, span: Span | None = None
) -> None:
    """Keep, average or reset the solvers' histories, or a span, after a synchronisation.

    Caffe's momentum history contains the learning rate, so where the rate drops between two rounds
    it is rescaled if it is averaged.
    """
    begin, end = span or (0, learner.weights.size)
    if momentum == "reset":
        for history in learner.histories:
            history[begin:end].fill(0.0)
    elif momentum == "average":
        dropped = learner.momentum and learner.rate < learner.last_rate
        for history in learner.histories:
            comm.mean(history[begin:end])
            if dropped:
                history.scale(learner.rate / learner.last_rate)


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
    def depends_on_time(self) -> bool:
        return self.seconds is not None

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
    """Return how far steps with momentum go, in units of one gradient: a_i."""
    if not momentum:
        return float(steps)
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
