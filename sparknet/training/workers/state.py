"""RunState: what a worker has of its run while it trains, which snapshots and validations read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sparknet.comm.collectives import Comm
from sparknet.net.learner import Learner
from sparknet.training.schedule import Hooks, RunPlan, Tally
from sparknet.training.strategies.strategy import State, Strategy

Json = dict[str, Any]


class RunState(ABC):
    """A worker's learner, comm and strategy, and how far they are."""

    state: State
    begun: float
    """The time by the comm's clock at which the run began."""

    def __init__(
        self,
        learner: Learner,
        strategy: Strategy,
        comm: Comm,
        plan: RunPlan,
        hooks: Hooks,
    ) -> None:
        self.learner, self.strategy, self.comm = learner, strategy, comm
        self.plan, self.hooks = plan, hooks
        self.clipped = learner.clipped
        self.counted = 0
        """This worker's bytes that are in one of the tally's totals."""
        self.tally = Tally()
        self.interrupted = self.is_doubted = False
        self.begun_with = comm.size
        """The number of workers at the beginning, by whose steps iterations count."""
        self.saved: int | None = None
        self.lost = ""
        """What of a snapshot could not be restored."""
        self.keeps_best = plan.patience is not None and hooks.validate is not None
        holds_best = self.keeps_best and (hooks.memory is not None or comm.rank == 0)
        self.best = learner.weights.copy() if holds_best else None
        self.got_on = False
        """Whether a round ended in this generation."""
        self.parts = False
        """Whether this generation ends after this round."""
        self.last: Json = {}
        """The event of the last round."""

    @abstractmethod
    def say(self, kind: str, **fields: Any) -> None:
        """Report an event, if this worker reports."""

    @abstractmethod
    def sent_since(self, before: int) -> int:
        """Return the bytes that all workers sent since then, which count for no round."""

    @abstractmethod
    def where(self, fault: str) -> str:
        """Return a sentence about a fault: its round, iteration and the last good snapshot."""
