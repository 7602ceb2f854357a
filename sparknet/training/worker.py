"""A worker, from its first call to the driver to its last; read it from top to bottom.

It is the same in a local process (`local_worker`) and in a Spark task (`sparknet.spark.task`),
which only read their records from different places: `take_part`.  Virtual workers and tests have a
learner and a comm already: `work`.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from math import ceil, isfinite
from typing import Any

import numpy as np

from sparknet.errors import CommError, Diverged, SparkNetError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.native import NDArray
from sparknet.net.scores import finished
from sparknet.training import snapshot
from sparknet.training.codecs import MEAN_ERRORS, OWN_ERRORS
from sparknet.training.comm import Comm
from sparknet.training.driver import DriverStore
from sparknet.training.failure import failure
from sparknet.training.histograms import look
from sparknet.training.learner import Learner
from sparknet.training.line import Line, Link
from sparknet.training.mesh import Listener
from sparknet.training.plan import ENDLESS, Hooks, RunPlan, Validate
from sparknet.training.regroup import regroup
from sparknet.training.rendezvous import Presence
from sparknet.training.run_spec import RunSpec
from sparknet.training.seat import Seat
from sparknet.training.store import FolderStore, Store
from sparknet.training.strategies import make_strategy
from sparknet.training.strategies.strategy import Round, Strategy, follow_first, warm_up
from sparknet.training.tally import Tally
from sparknet.training.tcp import TcpComm
from sparknet.training.trainee import Trainee, make_trainee
from sparknet.training.worker_records import WorkerRecords, gathered, introduced

Json = dict[str, Any]

_LONGEST_TRACE = 1 << 16
_BEST, _MODEL = "best weights", "model"


def reporting(link: Link, rank: int, work: Callable[[Line], None]) -> None:
    """Call ``work`` with a line to the driver, and report its error there."""
    with closing(link.dial(rank)) as line:
        try:
            work(line)
        except Exception as error:
            _tell(line, rank, error)
            raise


def _tell(line: Line, rank: int, error: Exception) -> None:
    foreign = not isinstance(error, SparkNetError)
    cause = CommError(str(error)) if foreign and _is_loss(error) else error
    said = {"worker": rank, **failure(cause)}
    if not isinstance(cause, SparkNetError):
        said["trace"] = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    with suppress(CommError):  # the driver is gone
        line.call("failed", failure=said)


def _is_loss(error: Exception) -> bool:
    """Whether an error means that a process is lost, the executor's JVM included."""
    of_spark = type(error).__module__.startswith(("pyspark.", "py4j."))
    return of_spark or isinstance(error, (ConnectionError, EOFError))


def take_part(spec: RunSpec, seat: Seat, line: Line, read: Callable[[], WorkerRecords]) -> None:
    """Train together with the other workers; ``read`` gives the records."""
    _Participant(spec, seat, line).run(read)


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


class _Participant:
    def __init__(self, spec: RunSpec, seat: Seat, line: Line) -> None:
        self.spec, self.seat, self.line = spec, seat, line

    def run(self, read: Callable[[], WorkerRecords]) -> None:
        spec, seat = self.spec, self.seat
        deadline = spec.settings.deadline
        with Presence(self.line, "training", seat.size, seat.where, deadline) as presence:
            self._say("reading", worker=seat.rank, where=seat.where)
            part = read()
            listener, host = _listener(seat.host, spec.settings.ports)
            try:
                met = presence.meet([host, listener.address[1], os.getpid()])
            except BaseException:
                listener.close()
                raise
            self._join(part, listener, met, presence)

    def _join(self, part: WorkerRecords, listener: Listener, met: Json, presence: Presence) -> None:
        link, rank = self.spec.link, self.seat.rank
        deadline = self.spec.settings.deadline
        run = f"{link.run}/{met['attempt']}"
        addresses = [(host, port) for host, port, _ in met["workers"]]
        mesh = TcpComm.connect(
            listener, rank, addresses, link.secret, deadline, run, link.seal, met["attempt"]
        )
        presence.go_on(mesh.report, mesh.fail)
        with mesh as comm:
            workers = introduced(comm, part, self.spec.validates, met["workers"])
            if rank == 0:
                self._say("workers", attempt=met["attempt"], workers=workers)
            learner, outcome = self._train(comm, part, met)
            if rank == 0:
                weights = np.asarray(learner.weights).data.cast("B")
                self.line.call("done", [weights], outcome=vars(outcome))
            comm.barrier()

    def _say(self, kind: str, **fields: Any) -> None:
        self.line.call("event", event={"event": kind, "time": time.time(), **fields})

    def _train(self, comm: Comm, part: WorkerRecords, met: Json) -> tuple[Learner, Outcome]:
        spec = self.spec
        trainee = make_trainee(spec, self.seat, part)
        counts = [int(count) for count in comm.gather(len(part.training))]
        records, is_whole = part.training, part.is_whole
        if not min(counts):
            records, is_whole = gathered(comm, records), True
        total = len(records) if is_whole else sum(counts)
        place = (comm.rank, comm.size) if is_whole else (0, 1)
        order = Order(len(records), spec.settings.seed, spec.settings.shuffle, *place)
        batches = Batches(records, trainee.batch_size, order, transforms=trainee.transforms)
        with closing(batches):
            learner = self._learner(trainee, batches, comm)
            hooks = self._hooks(trainee, part, comm, met)
            hooks.shares = not is_whole
            begun_with = comm.size
            if hooks.store is not None and hooks.resume is not None:
                begun_with = snapshot.Saved(hooks.store, hooks.resume).begun_with
            plan = spec.plan(total, trainee.batch_size * trainee.iter_size, begun_with)
            strategy = make_strategy(spec.settings.strategy)
            return learner, work(learner, strategy, comm, plan, hooks)

    def _learner(self, trainee: Trainee, batches: Batches, comm: Comm) -> Learner:
        """The learner with the driver's weights, and a random seed of its own for each worker."""
        learner = trainee.learner(batches)
        if comm.rank == 0:
            initial = np.frombuffer(self.line.call("initial")[1], np.float32)
            learner.weights.copy_from(NDArray.view(initial))
        comm.broadcast(learner.weights)
        return learner

    def _hooks(self, trainee: Trainee, part: WorkerRecords, comm: Comm, met: Json) -> Hooks:
        spec, line = self.spec, self.line
        metrics = tuple(spec.settings.metrics)
        identity = dict(spec.identity)
        if not part.is_whole:
            identity["data"] = sum(comm.gather(part.check_sum))
        return Hooks(
            on_event=lambda event: void(line.call("event", event=event)),
            validate=trainee.validation(part, comm, metrics) if spec.validates else None,
            metrics=metrics,
            interrupted=(lambda: bool(line.call("interrupted")[0]["interrupted"]))
            if comm.rank == 0
            else None,
            store=None if spec.settings.snapshots is None else self._store(),
            resume=met["resume"],
            identity=identity,
            own=met["own"],
            layout=trainee.layout,
            inputs=trainee.ranges,
        )

    def _store(self) -> Store:
        folder = self.spec.folder
        return DriverStore(self.line) if folder is None else FolderStore(folder)


def _listener(host: str, ports: Sequence[int]) -> tuple[Listener, str]:
    """A listener on this worker's known address, or else on all addresses."""
    try:
        return Listener(host, ports), host
    except CommError:  # a container's address as seen from outside
        return Listener("", ports), host


def void(_: object) -> None:
    """Ignore the answer of a call."""


def work(
    learner: Learner, strategy: Strategy, comm: Comm, plan: RunPlan, hooks: Hooks | None = None
) -> Outcome:
    """Train together with the other workers until the plan ends.

    All workers are given the same strategy and plan.  Afterwards every learner holds the
    trained weights: the last ones, or with ``patience`` those of the best validation.  All begin
    with the weights, histories and iteration of worker 0.
    """
    return _Rounds(learner, strategy, comm, plan, hooks or Hooks()).run()


class _Rounds:
    def __init__(
        self, learner: Learner, strategy: Strategy, comm: Comm, plan: RunPlan, hooks: Hooks
    ) -> None:
        self.learner, self.strategy, self.comm = learner, strategy, comm
        self.plan, self.hooks = plan, hooks
        self.clipped = learner.clipped
        self.counted = 0
        """This worker's bytes that are in one of the tally's totals."""
        self.tally = Tally()
        self.interrupted = False
        self.begun_with = comm.size
        """The number of workers at the beginning, by whose steps iterations count."""
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
        self.tally.total_bytes_starting += self._sent_since(0)
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
        found = snapshot.Saved(store, round)
        found.check(run)
        self.begun_with = found.begun_with
        if found.workers == self.comm.size:
            saved = found.load(self.comm.rank, self._arrays(), self._sliced(), (_BEST, _MODEL))
            self.lost = self.learner.restore(saved["learner"])
            self._restore(saved)
        else:
            self._regroup(found)
        self.saved = round

    def _restore(self, saved: Json) -> None:
        for name, value in saved["strategy"].items():
            setattr(self.state, name, value)
        self.tally = Tally(**saved["tally"])
        if self.keeps_best and not saved.get("keeps_best"):
            self.tally.forget_best()

    def _regroup(self, found: snapshot.Saved) -> None:
        """Go on from a snapshot of another number of workers."""
        comm, learner, alone = self.comm, self.learner, (_BEST, _MODEL)
        optional = (*alone, OWN_ERRORS, MEAN_ERRORS)
        carried = regroup(found, comm, self._arrays(), self._sliced(), optional, alone)
        self._restore(carried.numbers)
        mine = carried.learner_of(comm.rank, learner.state())
        samples, records = self.tally.total_samples, self.plan.records
        if self.hooks.shares or carried.numbers.get("shares"):
            mine["cursor"] = {"share": [samples, records]}
        self.lost = ". ".join(filter(None, [carried.told(comm.size), learner.restore(mine)]))
        self.strategy.regroup(learner, comm, self.state, found.workers)

    def _sliced(self) -> list[str]:
        """The names of the arrays of which each worker has a slice."""
        histories = [f"history {number}" for number in range(len(self.learner.histories))]
        return [MEAN_ERRORS, *(histories if self.strategy.slices_histories else ())]

    def _arrays(self) -> dict[str, NDArray]:
        """All buffers of a snapshot."""
        learner = self.learner
        begin, end = 0, learner.weights.size
        if self.strategy.slices_histories:
            begin, end = self.comm.bounds(end)[self.comm.rank]
        histories = {
            f"history {number}": one[begin:end] for number, one in enumerate(learner.histories)
        }
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
            "shares": self.hooks.shares,
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
        before = self.learner.iter
        done = self.strategy.round(self.learner, self.comm, self.state, self._left())
        self._keep_time(before)
        self._account(done)
        if self._every(self.plan.validate_every):
            self._validate()
        if self._every(self.plan.snapshot_every):
            self._save()

    def _left(self) -> int:
        """The steps left for each worker."""
        if self.plan.steps is None:
            return ENDLESS
        iterations = self.plan.steps - self.learner.iter
        return ceil((iterations * self.begun_with - self.tally.steps_over) / self.comm.size)

    def _keep_time(self, before: int) -> None:
        """Let the iteration follow the records that were seen.

        An iteration is one step of each of the workers that the run began with.  Where others go
        on, their steps count for more or less of it; the learning rate follows.
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

    def _sent_since(self, before: int) -> int:
        """What all workers' transports sent since then, which counts for no round."""
        mine = self.comm.traffic.sent - before
        self.counted += mine
        return sum(self.comm.gather(mine))

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
        sent = self._sent_since(before)
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
        begun, before = self.comm.clock(), self.comm.traffic.sent
        self.tally.total_seconds = begun - self.begun
        round, arrays = self.state.round, self._arrays()
        numbers = {**self._numbers(), "model": self._modelled(arrays)}
        run, layout = {**self._run(), "workers": self.begun_with}, self.hooks.layout
        done = snapshot.save(store, self.comm, round, run, arrays, numbers, layout)
        self.saved = done.round
        if self.comm.rank == 0:
            snapshot.prune(store, self.plan.keep)
        sent = self._sent_since(before)
        self.tally.total_bytes_saving += sent
        spent = self.comm.clock() - begun
        said = {"path": done.path, "bytes": done.bytes, "bytes_sent": sent}
        self._say("snapshot", **said, seconds=spent)

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
            total_bytes_starting=tally.total_bytes_starting,
            total_bytes_validating=tally.total_bytes_validating,
            total_bytes_saving=tally.total_bytes_saving,
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
