"""A worker, from its first call to the driver to its last; read it from top to bottom.

It is the same in a local process (`sparknet.training.workers.process`) and in a task of Spark,
which only read their records from different places: `take_part`.  Its rounds are `work`.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sparknet.comm.collectives import Comm
from sparknet.comm.mesh import Listener
from sparknet.comm.rpc import Line, Link
from sparknet.comm.tcp_comm import TcpComm
from sparknet.errors import CommError, PeerLost, SparkNetError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.net.learner import Learner
from sparknet.net.model import Model
from sparknet.training.checkpoints import snapshot
from sparknet.training.checkpoints.store import FolderStore, Store
from sparknet.training.driver.driver import DriverStore
from sparknet.training.driver.failure import failure
from sparknet.training.driver.rendezvous import Presence
from sparknet.training.schedule import Hooks
from sparknet.training.strategies import make_strategy
from sparknet.training.workers.host_memory import Agreed, agree
from sparknet.training.workers.records import (
    WorkerPlace,
    WorkerRecords,
    agreed,
    gathered,
    introduced,
    validation,
)
from sparknet.training.workers.rounds import Outcome, Parting, Rounds
from sparknet.training.workers.run_spec import RunSpec, computes, make_model

Json = dict[str, Any]

_LONGEST_TRACE = 1 << 16
_MOST_IDLE = 8
"""Generations in a row that may end before a round does."""


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
    report = {"worker": rank, **failure(cause)}
    if not isinstance(cause, SparkNetError):
        report["trace"] = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    with suppress(CommError):  # the driver is gone
        line.call("failed", failure=report)


def _is_loss(error: Exception) -> bool:
    """Return whether an error means that a process is lost, the executor's JVM included."""
    of_spark = type(error).__module__.startswith(("pyspark.", "py4j."))
    return of_spark or isinstance(error, (ConnectionError, EOFError))


def take_part(
    spec: RunSpec,
    place: WorkerPlace,
    line: Line,
    read: Callable[[], WorkerRecords],
) -> None:
    """Train together with the other workers; ``read`` gives the records."""
    Participant(spec, place, line).run(read)


@dataclass
class TrainedModel:
    """What a worker trains, from one generation to the next."""

    model: Model
    batches: Batches
    learner: Learner


class Participant:
    """One worker, through all generations that it is part of."""

    def __init__(self, spec: RunSpec, place: WorkerPlace, line: Line) -> None:
        self.spec, self.place, self.line = spec, place, line
        self.is_elastic, self.got_on = spec.is_elastic, False
        self.presence: Presence
        self.part: WorkerRecords
        self.trained: TrainedModel | None = None

    def run(self, read: Callable[[], WorkerRecords]) -> None:
        spec, place = self.spec, self.place
        deadline = spec.settings.deadline
        info = place.size, place.where, deadline, place.number
        with Presence(self.line, "training", *info) as self.presence:
            self._say("reading", worker=place.rank, where=place.where)
            self.part = read()
            try:
                self._take_part()
            finally:
                self.close()

    def close(self) -> None:
        if self.trained is not None:
            self.trained.batches.close()

    def _take_part(self) -> None:
        """Train to the end, through all generations where hosts change."""
        after, why, idle = 0, None, 0
        while True:
            listener, meeting = self._meet(after, why)
            if "moved" in meeting:
                return listener.close()
            after, why, self.got_on = int(meeting["attempt"]), None, False
            try:
                return self._join(listener, meeting)
            except Parting:
                idle = 0
            except CommError as error:
                if not self.is_elastic:
                    raise
                idle = 1 if self.got_on else idle + 1
                if idle > _MOST_IDLE:
                    raise
                why = self._reason(error)

    def _reason(self, error: CommError) -> list[Any]:
        """Return which worker is lost, its place and what happened."""
        if isinstance(error, PeerLost):
            return [error.rank, error.where, error.what]
        return [self.place.rank, self.place.where, str(error)]

    def _meet(self, after: int, why: Any) -> tuple[Listener, Json]:
        listener, host = _listener(self.place.host, self.spec.settings.ports)
        try:
            address = [host, listener.address[1], os.getpid()]
            return listener, self.presence.meet(address, after=after, why=why)
        except BaseException:
            listener.close()
            raise

    def _join(self, listener: Listener, met: Json) -> None:
        link, rank = self.spec.link, self.place.rank
        deadline = self.spec.settings.deadline
        generation = met["attempt"]
        run = f"{link.run}/{generation}"
        addresses = [(host, port) for host, port, _ in met["workers"]]
        changing = generation if self.is_elastic else None
        if self.is_elastic:
            self.presence.go_on(_connecting, listener.give_up, changing)
        mesh = TcpComm.connect(
            listener, rank, addresses, link.secret, deadline, run, link.seal, generation
        )
        self.presence.go_on(mesh.report, mesh.fail, changing)
        with mesh as comm:
            self.train_with(comm, met)

    def train_with(self, comm: Comm, met: Json) -> None:
        """Train in one generation, of which the driver and all workers said ``met``."""
        how = computes(self.spec, self.place)
        workers = introduced(comm, self.part, self.spec.validates, met["workers"], how)
        if comm.rank == 0:
            self._say("workers", attempt=met["attempt"], workers=workers)
            if texts := [one["outlier"] for one in workers if one["outlier"]]:
                self._say("note", text=texts[0], doubt=True)
        try:
            trained, outcome = self._train(comm, met)
        except Parting:
            comm.barrier()
            raise
        if comm.rank == 0:
            weights = np.asarray(trained.learner.weights).data.cast("B")
            self.line.call("done", [weights], outcome=vars(outcome))
        comm.barrier()

    def _say(self, kind: str, **fields: Any) -> None:
        self.line.tell({"event": kind, "time": time.time(), **fields})

    def _train(self, comm: Comm, met: Json) -> tuple[TrainedModel, Outcome]:
        """Begin, or go on where others have begun."""
        memory = self.place.memory
        agreed = None if memory is None else agree(comm, memory)
        if self.trained is not None and agreed is None:
            self.trained.batches.close()  # all begin anew, or from a snapshot
            self.trained = None
        trained = self.trained
        model = trained.model if trained else make_model(self.spec, self.place, self.part)
        records, total, is_whole = self._records(comm)
        if trained is None:
            trained = self.trained = self._prepared(model, records, is_whole, comm)
        if agreed is None:
            self._first_weights(trained.learner, comm)
        hooks = self._hooks(trained, comm, met)
        hooks.shares = not is_whole
        begun_with = self._begun_with(comm, hooks, agreed)
        plan = self.spec.plan(total, model.batch_size * model.iter_size, begun_with)
        strategy = make_strategy(self.spec.settings.strategy)
        rounds = Rounds(trained.learner, strategy, comm, plan, hooks)
        rounds.begun_with = begun_with
        try:
            rounds.start(agreed)
            return trained, rounds.go_on()
        finally:
            self.got_on = rounds.got_on

    def _begun_with(self, comm: Comm, hooks: Hooks, agreed: Agreed | None) -> int:
        """Return the number of workers by whose steps iterations count."""
        if agreed is not None:
            return int(agreed.numbers[comm.rank]["begun_with"])
        if hooks.store is not None and hooks.resume is not None:
            return int(snapshot.Saved(hooks.store, hooks.resume).begun_with)
        return comm.size

    def _records(self, comm: Comm) -> tuple[Records, int, bool]:
        """Return this worker's records, the number of all, and whether all have the same."""
        records, is_whole = self.part.training, self.part.is_whole
        counts = [int(count) for count in comm.gather(len(records))]
        if not min(counts):
            records, is_whole = gathered(comm, records), True
        return records, len(records) if is_whole else sum(counts), is_whole

    def _prepared(self, model: Model, records: Records, is_whole: bool, comm: Comm) -> TrainedModel:
        """Return the learner, with a random seed of its own for each worker."""
        settings = self.spec.settings
        share = (comm.rank, comm.size) if is_whole else (0, 1)
        order = Order(len(records), settings.seed or 0, settings.shuffle, *share)
        batches = Batches(records, model.batch_size, order, transforms=model.transforms)
        try:
            return TrainedModel(model, batches, model.learner(batches))
        except BaseException:
            batches.close()
            raise

    def _first_weights(self, learner: Learner, comm: Comm) -> None:
        """Take the driver's weights."""
        if comm.rank == 0:
            initial = np.frombuffer(self.line.call("initial")[1], np.float32)
            learner.weights.copy_from(NDArray.view(initial))
        comm.broadcast(learner.weights)

    def _hooks(self, trained: TrainedModel, comm: Comm, met: Json) -> Hooks:
        spec, line, part, model = self.spec, self.line, self.part, trained.model
        metrics = tuple(spec.settings.metrics)
        identity = dict(spec.identity)
        if not part.is_whole:
            identity["data"] = sum(comm.gather(part.check_sum))
        elif part.check_sum:
            identity["data"] = agreed(comm, part)
        return Hooks(
            on_event=line.tell,
            validate=validation(model, part, comm, metrics) if spec.validates else None,
            metrics=metrics,
            interrupted=partial(line.ask, "interrupted") if comm.rank == 0 else None,
            store=None if spec.settings.snapshots is None else self._store(),
            resume=met["resume"],
            identity=identity,
            own=met["own"],
            layout=model.layout,
            inputs=model.ranges,
            chance=model.chance,
            memory=self.place.memory,
            hosts=met.get("hosts", ()),
            newcomers=partial(line.ask, "newcomers") if self.is_elastic else None,
            arrived=None if spec.settings.leave_behind is None else self._arrived,
        )

    def _arrived(self, round: int, seconds: float) -> None:
        self.line.call("arrived", round=round, seconds=seconds)

    def _store(self) -> Store:
        folder = self.spec.folder
        return DriverStore(self.line) if folder is None else FolderStore(folder)


def _listener(host: str, ports: Sequence[int]) -> tuple[Listener, str]:
    """Return a listener on this worker's known address, or else on all addresses."""
    try:
        return Listener(host, ports), host
    except CommError:  # a container's address as seen from outside
        return Listener("", ports), host


def _connecting() -> Json:
    return {"doing": "connects to the others", "moved": int(time.process_time())}
