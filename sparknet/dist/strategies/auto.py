"""Auto: averaging, in rounds as long as an agreement is worth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import ClassVar, final

from sparknet.dist.codecs import Codec
from sparknet.dist.comm import Comm
from sparknet.dist.learner import Learner
from sparknet.dist.strategies.averaging import Averaging
from sparknet.dist.strategies.periodic import Agreed, InnerMomentum
from sparknet.dist.strategies.strategy import Round, State, Strategy
from sparknet.native import NDArray

_SHORT = 20
"""Steps up to which resetting or keeping each worker's own momentum costs more than it saves."""


@dataclass
class Tuned(Agreed):
    """What was measured, and what was made of it."""

    steps: int = 0
    """Of a round; 0 while it is being measured."""
    step_times: list[float] = field(default_factory=list)
    sync_times: list[float] = field(default_factory=list)


@final
@dataclass(frozen=True, kw_only=True)
class Auto(Strategy):
    """`Averaging` whose number of steps follows from what steps and agreements cost here.

    The first rounds measure C, the time of a step, and S, that of an agreement.  A round then
    has ``ratio`` · S / C steps, so that a share of 1 / (1 + ratio) of the time goes into
    agreeing: SparkNet's advice is τ ≈ 5 S, S in units of steps (Moritz et al., 2016).
    """

    name: ClassVar[str] = "auto"

    ratio: float = 5.0
    measured: int = 4
    """Rounds that are measured; the first of them warms up and does not count."""
    longest: int = 500
    codec: Codec | None = None

    def check(self) -> None:
        self.need(self.ratio > 0, "ratio", "more than 0")
        self.need(self.measured >= 2, "measured", "at least 2")
        self.need(self.longest >= 1, "longest", "at least 1")
        self._averaging(1)

    def start(self, learner: Learner, comm: Comm) -> Tuned:
        return Tuned(center=learner.weights.copy())

    def round(self, learner: Learner, comm: Comm, state: State, most: int) -> Round:
        assert isinstance(state, Tuned)
        done = self._averaging(state.steps or 1).round(learner, comm, state, most)
        if state.steps or comm.size == 1:
            return done
        state.step_times.append(done.seconds_computing / max(done.steps, 1))
        state.sync_times.append(done.seconds_communicating)
        if len(state.sync_times) < self.measured:
            return done
        return replace(done, note=self._choose(comm, state))

    def extras(self, learner: Learner, comm: Comm) -> dict[str, NDArray]:
        return self._averaging(1).extras(learner, comm)

    def _averaging(self, steps: int) -> Averaging:
        momentum: InnerMomentum = "average" if steps <= _SHORT else "keep"
        return Averaging(steps=steps, momentum=momentum, codec=self.codec)

    def _choose(self, comm: Comm, state: Tuned) -> str:
        """The same on all workers.  The least agreement is the one that waited for nobody."""
        step = comm.max(min(state.step_times[1:]))
        sync = comm.max(min(state.sync_times[1:]))
        wanted = ceil(self.ratio * sync / step) if step > 0 else self.longest
        state.steps = min(max(wanted, 1), self.longest)
        return (
            f"a step takes {1e3 * step:.3g} ms, an agreement {1e3 * sync:.3g} ms: "
            f"rounds have {state.steps} steps from now on"
        )
