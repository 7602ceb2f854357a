"""Auto: averaging, with rounds whose length follows the measured cost of a synchronisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, final

from sparknet.comm.codecs import Codec
from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.net.learner import Learner
from sparknet.training.strategies.averaging import Averaging, InnerMomentum, SharedModel
from sparknet.training.strategies.strategy import Round, RoundMeter, State, Strategy

Spent = list[float]
"""A worker's round: steps, seconds computing, seconds communicating."""

RATIO = 5.0
"""A round takes so many times as long as a synchronisation: SparkNet's advice is τ ≈ 5 S, S in
units of steps (Moritz et al., 2016)."""
LONGEST = 500


@dataclass(frozen=True)
class Costs:
    """C and S of SparkNet's section 3.1."""

    step: float
    """C, the seconds of a step."""
    sync: float
    """S, the seconds of a synchronisation, with the waiting for other workers."""

    @classmethod
    def of(cls, sums: Spent, rounds: float) -> Costs:
        """Return the means, from sums over so many rounds."""
        steps, computing, communicating = sums
        return cls(computing / steps, communicating / rounds)

    def length(self, ratio: float = RATIO, longest: float = LONGEST) -> float:
        """τ, the steps of a round that takes ``ratio`` times as long as its synchronisation."""
        steps = ratio * self.sync / self.step if self.step > 0 else float(longest)
        return min(max(steps, 1.0), float(longest))

    def share(self, steps: float) -> float:
        """Return the share of communication in rounds of so many steps."""
        total = steps * self.step + self.sync
        return self.sync / total if total else 0.0

    def __str__(self) -> str:
        return f"a step takes {1e3 * self.step:.3g} ms, a synchronisation {1e3 * self.sync:.3g} ms"


def added(sums: Spent, workers: Sequence[Spent], memory: float = 1.0) -> Spent:
    """Return the sums with a round's mean added; earlier rounds count ``memory`` times."""
    means = [sum(values) / len(workers) for values in zip(*workers, strict=True)]
    return [memory * old + new for old, new in zip(sums, means, strict=True)]


_SHORT, _VERY_SHORT = 20, 5
"""Rounds longer than the first bound do not average the momentum; rounds down to the second one
average it again.  There are two bounds because averaging the momentum sends more, which makes
rounds longer: with one bound, Auto would switch back and forth."""

_MEMORY = 0.9
"""The factor by which an earlier round counts less after each new one."""

_SLACK, _LEAP = 0.1, 2.0
"""The relative error of the length above which it changes, and the largest factor of a change: one
slow round among many should not make rounds much longer."""


@dataclass
class Tuned(SharedModel):
    """The measured times of rounds, and the length that follows from them."""

    length: float = 0.0
    """The mean number of steps in a round; 0 while single steps are measured."""
    owed: float = 0.5
    """The fraction of a step that rounds so far were too short, plus a half for rounding."""
    averages_momentum: bool = True
    spent: Spent = field(default_factory=list)
    """This worker's last round; the other fields are the same on all workers."""
    seen: int = 0
    """The number of rounds whose times all workers know."""
    rounds: float = 0.0
    """The number of rounds in ``sums``; earlier rounds count less."""
    sums: Spent = field(default_factory=lambda: [0.0, 0.0, 0.0])
    """Sums of the means over the workers."""


@final
@dataclass(frozen=True, kw_only=True)
class Auto(Strategy):
    """`Averaging` with a number of steps that follows from the measured times.

    A round has ``ratio`` · S / C steps, where C is the time of a step and S that of a
    synchronisation.  Synchronisation then takes 1 / (1 + ratio) of the time: SparkNet's advice is
    τ ≈ 5 S, S in units of steps (Moritz et al., 2016).  The first rounds, of one step
    each, measure both; later rounds correct them.  S is the mean over the workers and
    includes waiting for other workers: one slow worker makes rounds longer, up to ``longest``.
    """

    name: ClassVar[str] = "auto"
    leaves_behind: ClassVar[bool] = True

    ratio: float = RATIO
    measured: int = 4
    """The number of first rounds, of one step each; the very first is not measured."""
    longest: int = LONGEST
    codec: Codec | None = None

    @property
    def depends_on_time(self) -> bool:
        return True

    def check(self) -> None:
        self.need(self.ratio > 0, "ratio", "more than 0")
        self.need(self.measured >= 2, "measured", "at least 2")
        self.need(self.longest >= 1, "longest", "at least 1")
        self._averaging(1, averages_momentum=True)

    @property
    def needs_state(self) -> bool:
        return True  # rounds that are short average the momentum

    def start(self, learner: Learner, comm: Comm) -> Tuned:
        return Tuned(center=learner.weights.copy())

    def round(self, learner: Learner, comm: Comm, state: State, most: int) -> Round:
        assert isinstance(state, Tuned)
        meter, note = RoundMeter(comm), ""
        if state.spent:
            note = self._correct(state, comm.gather(state.spent))
        averaging = self._averaging(_steps(state), state.averages_momentum)
        done = meter.around(averaging.round(learner, comm, state, most))
        if comm.size == 1:
            return done
        state.spent = [done.steps, done.seconds_computing, done.seconds_communicating]
        return replace(done, note=note)

    def regroup(self, learner: Learner, comm: Comm, state: State, before: int) -> None:
        assert isinstance(state, Tuned)
        state.spent = []  # was measured with other workers
        self._averaging(1, averages_momentum=True).regroup(learner, comm, state, before)

    def extras(self, learner: Learner, comm: Comm) -> dict[str, NDArray]:
        return self._averaging(1, averages_momentum=True).extras(learner, comm)

    def _averaging(self, steps: int, averages_momentum: bool) -> Averaging:
        momentum: InnerMomentum = "average" if averages_momentum else "keep"
        return Averaging(steps=steps, momentum=momentum, codec=self.codec)

    def _correct(self, state: Tuned, spent: Sequence[Spent]) -> str:
        """Take in the times of all workers' last round; returns a note if the length changes."""
        state.seen += 1
        if state.seen == 1:
            return ""
        state.rounds = _MEMORY * state.rounds + 1.0
        state.sums = added(state.sums, spent, _MEMORY)
        return self._choose(state) if state.seen >= self.measured else ""

    def _choose(self, state: Tuned) -> str:
        costs, length = Costs.of(state.sums, state.rounds), state.length
        target = costs.length(self.ratio, self.longest)
        if length:
            target = min(max(target, length / _LEAP), length * _LEAP)
        if abs(target - length) <= _SLACK * length:
            return ""
        state.length, state.owed = target, 0.5
        state.averages_momentum = target <= (_SHORT if state.averages_momentum else _VERY_SHORT)
        return f"{costs}: rounds have {target:.3g} steps from now on"


def _steps(state: Tuned) -> int:
    """Return the steps of the next round: a whole number, whose mean over rounds is the length."""
    state.owed += state.length or 1.0
    steps = int(state.owed)
    state.owed -= steps
    return steps
