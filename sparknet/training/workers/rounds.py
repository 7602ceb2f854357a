"""Rounds: a training from its first round to its last, as each worker runs it: `work`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil, isfinite
from typing import Any

from sparknet.comm.collectives import Comm
from sparknet.errors import Diverged
from sparknet.native import NDArray
from sparknet.net.learner import Learner
from sparknet.training.checkpoints.resume import check_weights, resume, save
from sparknet.training.early_stopping import is_out_of_patience
from sparknet.training.schedule import ENDLESS, Hooks, RunPlan
from sparknet.training.strategies.strategy import Round, Strategy, follow_first, warm_up
from sparknet.training.workers.host_memory import Agreed
from sparknet.training.workers.metrics import look, take_best, validate
from sparknet.training.workers.recovery import keep, restore
from sparknet.training.workers.state import RunState

Json = dict[str, Any]

_FEW_STEPS = (50, 10)
"""Steps in which a loss may be anything, while training goes on and at its end."""
_NEAR = 0.98
"""The share of the loss by guessing from which on a net has learned nothing."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended; the learner holds the weights."""

    reason: str
    round: int
    iteration: int
    samples: int
    metrics: dict[str, float]
    """The last validation's metrics; the best one's where the weights are those."""
    snapshot: str | None
    """The path of the newest snapshot."""
    best: int | None = None
    """The iteration of the weights where they are the best and not the last ones."""


def work(
    learner: Learner, strategy: Strategy, comm: Comm, plan: RunPlan, hooks: Hooks | None = None
) -> Outcome:
    """Train together with the other workers until the plan ends.

    All workers are given the same strategy and plan.  Afterwards every learner holds the
    trained weights: the last ones, or with ``patience`` those of the best validation.  All begin
    with the weights, histories and iteration of worker 0.
    """
    rounds = Rounds(learner, strategy, comm, plan, hooks or Hooks())
    rounds.start()
    return rounds.go_on()


class Parting(Exception):
    """The end of a generation after a round: workers move to other hosts."""


class Rounds(RunState):
    """The rounds of one worker, in one generation."""

    def go_on(self) -> Outcome:
        """Train to the end."""
        while (reason := self._reason()) is None:
            if self.parts:
                self.strategy.part(self.state)
                raise Parting
            self._round()
            if self._every(self.plan.validate_every):
                validate(self)
            if self._every(self.plan.snapshot_every):
                save(self)
            if self.hooks.memory is not None:
                keep(self, self.hooks.memory, self.hooks.hosts)
        return self._stop(reason)

    # -- the beginning -------------------------------------------------------------------

    def start(self, agreed: Agreed | None = None) -> None:
        """Begin, or go on from a snapshot or from hosts' memory; all workers call it."""
        if agreed is None:
            self._start()
        else:
            assert self.hooks.memory is not None
            self.state = self.strategy.start(self.learner, self.comm)
            restore(self, self.hooks.memory, agreed)
            self.tally.total_bytes_starting += self.sent_since(0)
            self.begun = self.comm.clock() - self.tally.total_seconds
        if self.hooks.memory is not None and self.best is not None and agreed is None:
            self.comm.broadcast(self.best)  # a snapshot's is that of worker 0
        self.state.arrived = self.hooks.arrived

    def _start(self) -> None:
        if self.hooks.resume is None:
            follow_first(self.learner, self.comm)
        self.state = self.strategy.start(self.learner, self.comm)
        if self.hooks.resume is not None:
            resume(self, self.hooks.resume)
        self.tally.total_bytes_starting += self.sent_since(0)
        self.begun = self.comm.clock() - self.tally.total_seconds
        self._say_start()
        if self.lost:
            self.say("note", text=self.lost)
        if self.hooks.resume is None:
            seed = int(self.hooks.identity.get("seed") or 0)
            self.strategy.make_unequal(self.learner, self.comm.rank, seed)
        if self.strategy.warmup and self.hooks.resume is None:
            steps = min(self.strategy.warmup, self._steps_left())
            self._account(warm_up(self.learner, self.comm, steps), warmup=True)
            self.state = self.strategy.start(self.learner, self.comm)

    # -- a round -------------------------------------------------------------------------

    def _round(self) -> None:
        if self._is_watched():
            self.learner.on_gradient = self._look
        before = self.learner.iter
        done = self.strategy.round(self.learner, self.comm, self.state, self._steps_left())
        self._keep_time(before)
        self._account(done)
        self.got_on = True

    def _steps_left(self) -> int:
        """Return the steps left for each worker."""
        if self.plan.steps is None:
            return ENDLESS
        iterations = self.plan.steps - self.learner.iter
        return ceil((iterations * self.begun_with - self.tally.steps_over) / self.comm.size)

    def _keep_time(self, before: int) -> None:
        """Let the iteration follow the records that were seen.

        An iteration is one step of each of the workers that the run began with.  Where another
        number of them resumed it, their steps count for more or less; the learning rate follows.
        """
        if self.comm.size == self.begun_with:
            return
        steps = (self.learner.iter - before) * self.comm.size + self.tally.steps_over
        iterations, self.tally.steps_over = divmod(steps, self.begun_with)
        self.learner.seek(before + iterations)

    def _every(self, rounds: int) -> bool:
        return bool(rounds) and self.state.round % rounds == 0

    def _account(self, mine: Round, warmup: bool = False) -> None:
        """Gather all workers' rounds and report them; raises Diverged if a loss is bad."""
        now = self.comm.clock() - self.begun
        wish = bool(self.hooks.interrupted and self.hooks.interrupted())
        clipped, self.clipped = self.learner.clipped - self.clipped, self.learner.clipped
        own = {**asdict(mine), "now": now, "interrupted": wish, "clipped": clipped}
        own["sent"] = self._uncounted()
        if self.comm.rank == 0 and self.hooks.newcomers is not None:
            own["newcomers"] = self.hooks.newcomers()
        reports = self.comm.gather(own)
        self.interrupted = any(report["interrupted"] for report in reports)
        self.parts = bool(reports[0].get("newcomers"))
        event = self.tally.add(reports)
        self._check_loss(reports, event["loss"])
        self.last = {"warmup": warmup, "rate": self.learner.rate, **event}
        self.say("round", **self.last)
        self._look_at_loss(event["loss"])
        if mine.note:
            self.say("note", text=mine.note)

    def _uncounted(self) -> int:
        """Return the bytes that this worker's transport sent since the last call."""
        nbytes = self.comm.traffic.sent
        fresh, self.counted = nbytes - self.counted, nbytes
        return fresh

    def sent_since(self, before: int) -> int:
        """Return what all workers' transports sent since then, which counts for no round."""
        mine = self.comm.traffic.sent - before
        self.counted += mine
        return sum(self.comm.gather(mine))

    def _check_loss(self, reports: Sequence[Json], loss: float) -> None:
        for rank, report in enumerate(reports):
            if report["steps"] and not isfinite(report["loss"]):
                raise Diverged(self.where(f"the loss of worker {rank} is {report['loss']}"))
        if loss > self.plan.diverged * max(self.tally.first_loss, 1.0):
            first = self.tally.first_loss
            raise Diverged(self.where(f"the loss is {loss:g}, after {first:g} in the first round"))

    def where(self, fault: str) -> str:
        newest = self.newest()
        last = f"the last good snapshot is {newest}" if newest else "no snapshot was made"
        return (
            f"{fault} in round {self.state.round}, iteration {self.learner.iter}; {last}; "
            f"{self._usual_causes()}"
        )

    def _look_at_loss(self, loss: float, ends: bool = False) -> None:
        """Say once that a loss of classes is worse than that of a net which guesses, or no better
        after all records were seen twice."""
        chance, samples = self.hooks.chance, self.tally.total_samples
        if chance is None or self.is_doubted or self.learner.iter < _FEW_STEPS[ends]:
            return
        had_time = ends and samples >= 2 * (self.plan.records or samples)
        if loss > 2 * chance or (had_time and loss > _NEAR * chance):
            self.is_doubted = True
            done, causes = self.learner.iter, self._usual_causes("too large or too small")
            text = (
                f"the loss is {loss:.3g} after {done} iterations, and guessing gives {chance:.3g}"
            )
            self.say("note", text=f"{text}; {causes}", doubt=True)

    def _usual_causes(self, rate: str = "too large") -> str:
        ranges = {} if self.hooks.inputs is None else self.hooks.inputs()
        text = ", ".join(
            f"'{name}' runs from {low:g} to {high:g}" for name, (low, high) in ranges.items()
        )
        return (
            f"the usual causes are a base_lr that is {rate} (the rate is "
            f"{self.learner.last_rate:g}) and inputs that are not scaled{text and f' ({text})'}"
        )

    def _is_watched(self) -> bool:
        """Return whether this worker looks at the layers at the beginning of the next round."""
        every, first = self.plan.histograms_every, self.comm.rank == 0
        return bool(every) and first and self.state.round % every == 0

    def _look(self, weights: NDArray, gradients: NDArray) -> None:
        if self.hooks.layout is not None:
            self.say("layers", parameters=look(self.hooks.layout, weights, gradients))

    def newest(self) -> str | None:
        store = self.hooks.store
        return None if store is None or self.saved is None else store.path(self.saved)

    # -- the end -------------------------------------------------------------------------

    def _reason(self) -> str | None:
        plan, tally = self.plan, self.tally
        if self.interrupted:
            return "interrupted"
        if plan.steps is not None and self.learner.iter >= plan.steps:
            return "steps"
        if plan.seconds is not None and tally.total_seconds >= plan.seconds:
            return "seconds"
        if is_out_of_patience(tally, plan):
            return "patience"
        return None

    def _stop(self, reason: str) -> Outcome:
        if self.plan.snapshot_every or reason == "interrupted":
            save(self)
        if self.comm.size > 1:
            self.strategy.finish(self.learner, self.comm, self.state)
        check_weights(self)
        if self.plan.validate_every and self.tally.validated != self.learner.iter:
            validate(self)
        self._look_at_loss(self.last.get("loss", 0.0), ends=True)
        best = None if reason == "interrupted" else take_best(self)
        tally = self.tally
        tally.total_bytes_sent += sum(self.comm.gather(self._uncounted()))
        self.say(
            "stop",
            reason=reason,
            best=best,
            total_samples=tally.total_samples,
            total_bytes_sent=tally.total_bytes_sent,
            total_bytes_starting=tally.total_bytes_starting,
            total_bytes_validating=tally.total_bytes_validating,
            total_bytes_saving=tally.total_bytes_saving,
            total_seconds=self.comm.clock() - self.begun,
            communication=tally.communication,
            snapshot=self.newest(),
        )
        return Outcome(
            reason,
            self.state.round,
            self.learner.iter,
            tally.total_samples,
            tally.metrics,
            self.newest(),
            best,
        )

    # -- events --------------------------------------------------------------------------

    def _say_start(self) -> None:
        plan = self.plan
        self.say(
            "start",
            net=plan.net,
            seeds=[self.hooks.identity.get(name) for name in ("seed", "order_seed")],
            workers=self.comm.size,
            strategy=self.strategy.name,
            settings=self.strategy.settings(),
            steps=plan.steps,
            seconds=plan.seconds,
            records=plan.records,
            batch_size=plan.batch_size,
            run=None if self.hooks.store is None else self.hooks.store.place,
            resumed=self.newest(),
        )

    def say(self, kind: str, **fields: Any) -> None:
        if self.comm.rank or self.hooks.on_event is None:
            return
        samples, records = self.tally.total_samples, self.plan.records
        event = {
            "event": kind,
            "time": time.time(),
            "round": self.state.round,
            "iteration": self.learner.iter,
            "epoch": samples / records if records else None,
        }
        self.hooks.on_event({**event, **fields})
