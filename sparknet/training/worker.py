"""work: trains one worker of a run, in a thread, a process or a Spark task."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from sparknet.errors import Diverged
from sparknet.native import NDArray
from sparknet.net.scores import finished
from sparknet.training import snapshot
from sparknet.training.comm import Comm
from sparknet.training.histograms import look
from sparknet.training.learner import Learner
from sparknet.training.plan import ENDLESS, Hooks, Plan, Validate
from sparknet.training.strategies.strategy import Round, Strategy, follow_first, warm_up
from sparknet.training.tally import Tally

Json = dict[str, Any]

_BEST, _MODEL = "best weights", "model"


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
    learner: Learner, strategy: Strategy, comm: Comm, plan: Plan, hooks: Hooks | None = None
) -> Outcome:
    """Train together with the other workers until the plan ends.

    All workers are given the same strategy and plan.  Afterwards every learner holds the
    trained weights: the last ones, or with ``patience`` those of the best validation.  All begin
    with the weights, histories and iteration of worker 0.
    """
    return _Rounds(learner, strategy, comm, plan, hooks or Hooks()).run()


class _Rounds:
    def __init__(
        self, learner: Learner, strategy: Strategy, comm: Comm, plan: Plan, hooks: Hooks
    ) -> None:
        self.learner, self.strategy, self.comm = learner, strategy, comm
        self.plan, self.hooks = plan, hooks
        self.clipped = learner.clipped
        self.counted = 0
        """This worker's bytes that are in the tally, or were sent by validations."""
        self.tally = Tally()
        self.interrupted = False
        self.saved: int | None = None
        self.lost = ""
        """What of a snapshot could not be restored."""
        self.keeps_best = plan.patience is not None and hooks.validate is not None
        self.best = learner.weights.copy() if self.keeps_best and comm.rank == 0 else None

    def run(self) -> Outcome:
        self._start()
        while (reason := self._reason()) is None:
            self._round()
        return self._stop(reason)

    # -- the beginning -------------------------------------------------------------------

    def _start(self) -> None:
        if self.hooks.resume is None:
            follow_first(self.learner, self.comm)
        self.state = self.strategy.start(self.learner, self.comm)
        if self.hooks.resume is not None:
            self._resume(self.hooks.resume)
        self.begun = self.comm.clock() - self.tally.total_seconds
        self._say_start()
        if self.lost:
            self._say("note", text=self.lost)
        if self.strategy.warmup and self.hooks.resume is None:
            steps = min(self.strategy.warmup, self._left())
            self._account(warm_up(self.learner, self.comm, steps), warmup=True)
            self.state = self.strategy.start(self.learner, self.comm)

    def _resume(self, round: int) -> None:
        assert self.hooks.store is not None
        store = self.hooks.store
        run = self._run()
        if self.hooks.own:
            run.pop("data", None)
        optional = (_BEST, _MODEL)
        saved = snapshot.load(store, self.comm, round, run, self._arrays(), optional)
        self.lost = self.learner.restore(saved["learner"])
        for name, value in saved["strategy"].items():
            setattr(self.state, name, value)
        self.tally = Tally(**saved["tally"])
        if self.keeps_best and not saved.get("keeps_best"):
            self.tally.forget_best()
        self.saved = round

    def _arrays(self) -> dict[str, NDArray]:
        """All buffers of a snapshot."""
        learner = self.learner
        histories = {f"history {number}": one for number, one in enumerate(learner.histories)}
        mine = {f"strategy {name}": one for name, one in self.state.arrays().items()}
        extras = self.strategy.extras(learner, self.comm)
        best = {} if self.best is None else {_BEST: self.best}
        return {"weights": learner.weights, **histories, **mine, **extras, **best}

    def _numbers(self) -> Json:
        """All other state of a snapshot."""
        return {
            "learner": self.learner.state(),
            "strategy": self.state.numbers(),
            "tally": asdict(self.tally),
            "keeps_best": self.keeps_best,
        }

    def _modelled(self, arrays: dict[str, NDArray]) -> str:
        """The name of the array that training would return now; it is added if it is missing."""
        if self.keeps_best and self.tally.best is not None and self.tally.without_best:
            return _BEST
        model = self.learner.weights
        if self.comm.size > 1:
            model = self.strategy.model(self.learner, self.comm, self.state)
        for name, array in arrays.items():
            if array is model:
                return name
        arrays[_MODEL] = model
        return _MODEL

    def _run(self) -> Json:
        """What must be equal in a snapshot to resume it."""
        return {
            "workers": self.comm.size,
            "strategy": self.strategy.settings(),
            "weights": self.learner.weights.size,
            "records": self.plan.records,
            "batch_size": self.plan.batch_size,
            **self.hooks.identity,
        }

    # -- a round -------------------------------------------------------------------------

    def _round(self) -> None:
        if self._is_watched():
            self.learner.on_gradient = self._look
        self._account(self.strategy.round(self.learner, self.comm, self.state, self._left()))
        if self._every(self.plan.validate_every):
            self._validate()
        if self._every(self.plan.snapshot_every):
            self._save()

    def _left(self) -> int:
        """The iterations left."""
        return ENDLESS if self.plan.steps is None else self.plan.steps - self.learner.iter

    def _every(self, rounds: int) -> bool:
        return bool(rounds) and self.state.round % rounds == 0

    def _account(self, mine: Round, warmup: bool = False) -> None:
        """Gather all workers' rounds and report them; raises Diverged if a loss is bad."""
        now = self.comm.clock() - self.begun
        wish = bool(self.hooks.interrupted and self.hooks.interrupted())
        clipped, self.clipped = self.learner.clipped - self.clipped, self.learner.clipped
        own = {**asdict(mine), "now": now, "interrupted": wish, "clipped": clipped}
        own["sent"] = self._uncounted()
        reports = self.comm.gather(own)
        self.interrupted = any(report["interrupted"] for report in reports)
        event = self.tally.add(reports)
        self._check_loss(reports, event["loss"])
        self._say("round", warmup=warmup, rate=self.learner.rate, **event)
        if mine.note:
            self._say("note", text=mine.note)

    def _uncounted(self) -> int:
        """The bytes that this worker's transport sent since the last call."""
        sent = self.comm.traffic.sent
        fresh, self.counted = sent - self.counted, sent
        return fresh

    def _check_loss(self, reports: Sequence[Json], loss: float) -> None:
        for rank, report in enumerate(reports):
            if report["steps"] and not isfinite(report["loss"]):
                raise Diverged(self._where(f"the loss of worker {rank} is {report['loss']}"))
        if loss > self.plan.diverged * max(self.tally.first_loss, 1.0):
            first = self.tally.first_loss
            raise Diverged(self._where(f"the loss is {loss:g}, after {first:g} in the first round"))

    def _where(self, fault: str) -> str:
        newest = self._newest()
        last = f"the last good snapshot is {newest}" if newest else "no snapshot was made"
        return (
            f"{fault} in round {self.state.round}, iteration {self.learner.iter}; {last}; "
            f"{self._usual_causes()}"
        )

    def _usual_causes(self) -> str:
        given = {} if self.hooks.inputs is None else self.hooks.inputs()
        told = ", ".join(
            f"'{name}' runs from {low:g} to {high:g}" for name, (low, high) in given.items()
        )
        return (
            f"the usual causes are a base_lr that is too large (the rate is "
            f"{self.learner.last_rate:g}) and inputs that are not scaled{told and f' ({told})'}"
        )

    def _is_watched(self) -> bool:
        """Whether this worker looks at the layers at the beginning of the next round."""
        every, first = self.plan.histograms_every, self.comm.rank == 0
        return bool(every) and first and self.state.round % every == 0

    def _look(self, weights: NDArray, gradients: NDArray) -> None:
        if self.hooks.layout is not None:
            self._say("layers", parameters=look(self.hooks.layout, weights, gradients))

    # -- validating ----------------------------------------------------------------------

    def _validate(self) -> None:
        if self.hooks.validate is None:
            return
        begun, before = self.comm.clock(), self.comm.traffic.sent
        model = self.learner.weights
        if self.comm.size > 1:
            model = self.strategy.model(self.learner, self.comm, self.state)
        records, metrics = self._measured(self.hooks.validate, model)
        mine = self.comm.traffic.sent - before
        sent = sum(self.comm.gather(mine))
        self.counted += mine
        self.tally.total_bytes_validating += sent
        best = self.tally.judge(metrics, self.plan, self.learner.iter)
        if best and self.best is not None:
            self.best.copy_from(model)
        spent = self.comm.clock() - begun
        said = {"records": records, "metrics": metrics, "best": best}
        self._say("validation", **said, bytes_sent=sent, seconds=spent)

    def _measured(self, validate: Validate, model: NDArray) -> tuple[int, dict[str, float]]:
        weights = self.learner.weights
        trained = weights.copy() if model is not weights else None
        if trained is not None:
            weights.copy_from(model)
        self.learner.settle()
        count, means = validate()
        if trained is not None:
            weights.copy_from(trained)
        records, joined = _joined(self.comm.gather({"records": count, "metrics": means}))
        return records, finished(joined, self.hooks.metrics, records)

    # -- snapshots -------------------------------------------------------------------------

    def _save(self) -> None:
        store = self.hooks.store
        if store is None or self.saved == self.state.round:
            return
        self._check_weights()
        begun = self.comm.clock()
        self.tally.total_seconds = begun - self.begun
        round, arrays = self.state.round, self._arrays()
        numbers = {**self._numbers(), "model": self._modelled(arrays)}
        layout = self.hooks.layout
        done = snapshot.save(store, self.comm, round, self._run(), arrays, numbers, layout)
        self.saved = done.round
        if self.comm.rank == 0:
            snapshot.prune(store, self.plan.keep)
        spent = self.comm.clock() - begun
        self._say("snapshot", path=done.path, bytes=done.bytes, seconds=spent)

    def _check_weights(self) -> None:
        """Raise Diverged if weights are not finite."""
        broken = self.comm.gather(not self.learner.weights.is_finite())
        if any(broken):
            fault = f"worker {broken.index(True)} has weights that are not finite"
            raise Diverged(self._where(fault))

    def _newest(self) -> str | None:
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
        if plan.patience is not None and tally.without_best >= plan.patience:
            return "patience"
        return None

    def _stop(self, reason: str) -> Outcome:
        if self.plan.snapshot_every or reason == "interrupted":
            self._save()
        if self.comm.size > 1:
            self.strategy.finish(self.learner, self.comm, self.state)
        self._check_weights()
        if self.plan.validate_every and self.tally.validated != self.learner.iter:
            self._validate()
        best = None if reason == "interrupted" else self._take_best()
        tally = self.tally
        tally.total_bytes_sent += sum(self.comm.gather(self._uncounted()))
        self._say(
            "stop",
            reason=reason,
            best=best,
            total_samples=tally.total_samples,
            total_bytes_sent=tally.total_bytes_sent,
            total_bytes_validating=tally.total_bytes_validating,
            total_seconds=self.comm.clock() - self.begun,
            communication=tally.communication,
            snapshot=self._newest(),
        )
        return Outcome(
            reason,
            self.state.round,
            self.learner.iter,
            tally.total_samples,
            tally.metrics,
            self._newest(),
            best,
        )

    def _take_best(self) -> int | None:
        """Restore the weights of the best validation; returns their iteration if they changed.

        The solvers' histories stay those of the last iteration.
        """
        tally = self.tally
        if not self.keeps_best or tally.best is None or not tally.without_best:
            return None
        if self.best is not None:
            self.learner.weights.copy_from(self.best)
        self.comm.broadcast(self.learner.weights)
        tally.metrics = tally.best_metrics
        return tally.best_iteration

    # -- events --------------------------------------------------------------------------

    def _say_start(self) -> None:
        plan = self.plan
        self._say(
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
            resumed=self._newest(),
        )

    def _say(self, kind: str, **fields: Any) -> None:
        if self.comm.rank or self.hooks.on_event is None:
            return
        seen, records = self.tally.total_samples, self.plan.records
        event = {
            "event": kind,
            "time": time.time(),
            "round": self.state.round,
            "iteration": self.learner.iter,
            "epoch": seen / records if records else None,
        }
        self.hooks.on_event({**event, **fields})


def _joined(parts: Sequence[Json]) -> tuple[int, dict[str, float]]:
    """The means over all records, from the means of the workers' parts."""
    total = sum(int(part["records"]) for part in parts)
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part["metrics"].items():
            sums[name] = sums.get(name, 0.0) + value * part["records"]
    return total, {name: value / total for name, value in sums.items()} if total else {}
