"""The task that trains: what each of the K tasks of a barrier stage does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.dist.comm import Comm
from sparknet.dist.failure import failure
from sparknet.dist.learner import NetFeed, SolverLearner
from sparknet.dist.line import Line
from sparknet.dist.mesh import Listener
from sparknet.dist.plan import Hooks, Validate
from sparknet.dist.rendezvous import Presence
from sparknet.dist.tcp import TcpComm
from sparknet.dist.worker import Outcome, work
from sparknet.errors import CommError, SparkError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.source import ArrayRecords, Records
from sparknet.native import NDArray, set_threads
from sparknet.net import Net
from sparknet.spark.assignment import Assignment
from sparknet.spark.control import DriverStore
from sparknet.spark.ingest import Part, ingest
from sparknet.spark.probe import task_host
from sparknet.spark.scratch import scratch
from sparknet.weights import layout_of

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "worker int"


def train(batches: Iterable[pa.RecordBatch], assignment: Assignment) -> Iterator[pa.RecordBatch]:
    """Train on a partition together with the other tasks; a row when it is done.

    What it writes, opens and starts ends with it, however it ends.
    """
    import pyarrow as pa
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    rank = context.partitionId()
    set_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    with closing(_line(assignment, rank)) as line:
        try:
            with scratch(assignment.run) as folder:
                _Worker(context, line, assignment, folder).run(batches)
        except Exception as error:
            _tell(line, rank, error)
            raise
    yield pa.RecordBatch.from_pydict({"worker": pa.array([rank], pa.int32())})


def _line(given: Assignment, rank: int) -> Line:
    return Line.to(given.driver, given.secret, given.run, rank, given.seal)


def _tell(line: Line, rank: int, error: Exception) -> None:
    """The driver hears it in the worker's own words, if it is still there."""
    cause = CommError(str(error)) if _is_loss(error) else error
    with suppress(CommError):
        line.call("failed", failure={"worker": rank, **failure(cause)})


def _is_loss(error: Exception) -> bool:
    """Whether it says that somebody is gone, the executor's JVM included: no fault of the run's."""
    of_spark = type(error).__module__.startswith(("pyspark.", "py4j."))
    return of_spark or isinstance(error, (ConnectionError, EOFError))


class _Worker:
    """One task's part."""

    def __init__(self, context: Any, line: Line, assignment: Assignment, folder: Path) -> None:
        self.line, self.assignment, self.folder = line, assignment, folder
        self.rank: int = context.partitionId()
        self.size: int = len(context.getTaskInfos())

    def run(self, batches: Iterable[pa.RecordBatch]) -> Outcome:
        given = self.assignment
        where = f"{task_host()} (process {os.getpid()})"
        with Presence(self.line, "training", self.size, where, given.deadline) as presence:
            self._say("reading", worker=self.rank, where=where)
            part = ingest(batches, self.folder / "records", given.mapping, given.shapes)
            listener, host = _listener(given.ports)
            try:
                met = presence.meet([host, listener.address[1], os.getpid()])
            except BaseException:
                listener.close()
                raise
        return self._join(part, listener, met)

    def _join(self, part: Part, listener: Listener, met: dict[str, Any]) -> Outcome:
        given = self.assignment
        run = f"{given.run}/{met['attempt']}"
        addresses = [(host, port) for host, port, _ in met["workers"]]
        with TcpComm.connect(
            listener, self.rank, addresses, given.secret, given.deadline, run, given.seal
        ) as comm:
            self._introduce(comm, part, met)
            outcome = self._train(comm, part, met)
            if self.rank == 0:
                self.line.call("done", [self._bytes], outcome=vars(outcome))
            comm.barrier()
        return outcome

    def _introduce(self, comm: Comm, part: Part, met: dict[str, Any]) -> None:
        """The driver hears who the workers are, and how many records each has."""
        counts = comm.gather([len(part.training), len(part.validation)])
        for number, what in enumerate(("training", "validation")[: 1 + self.assignment.validates]):
            if not any(count[number] for count in counts):
                raise SparkError(f"the {what} data has no records")
        if self.rank:
            return
        workers = [
            {"host": host, "process": process, "records": records, "held_out": held}
            for (host, _, process), (records, held) in zip(met["workers"], counts, strict=True)
        ]
        self._say("workers", attempt=met["attempt"], workers=workers)

    def _say(self, kind: str, **fields: Any) -> None:
        self.line.call("event", event={"event": kind, "time": time.time(), **fields})

    def _train(self, comm: Comm, part: Part, met: dict[str, Any]) -> Outcome:
        given = self.assignment
        net = self._net(comm)
        counts = [int(count) for count in comm.gather(len(part.training))]
        records, order = (
            part.training,
            Order(max(counts[self.rank], 1), given.order_seed, given.shuffle),
        )
        if not min(counts):
            records = shared(comm, part.training)
            order = Order(len(records), given.order_seed, given.shuffle, self.rank, self.size)
        batches = Batches(records, net.batch_size, order, transforms=net.transforms)
        with closing(batches):
            net.set_training_data(batches, transformed=True)
            learner = SolverLearner(net.solver, NetFeed(net, batches))
            assert net.settings is not None
            plan = given.make_plan(
                sum(counts), net.batch_size * int(net.settings.iter_size), self.size
            )
            hooks = self._hooks(net, part, met)
            hooks.identity["data"] = sum(comm.gather(part.check_sum))
            return work(learner, given.make_strategy(), comm, plan, hooks)

    def _net(self, comm: Comm) -> Net:
        """The net with the driver's weights; random numbers differ from worker to worker."""
        text = self.assignment.solver.unpacked(self.folder)
        net = Net(text, seed=self.assignment.seed + self.rank, precision=self.assignment.precision)
        self._weights = net.net.flat_params
        if self.rank == 0:
            initial = np.frombuffer(self.line.call("initial")[1], np.float32)
            self._weights.copy_from(NDArray.view(initial))
        comm.broadcast(self._weights)
        return net

    @property
    def _bytes(self) -> memoryview:
        return np.asarray(self._weights).data.cast("B")

    def _hooks(self, net: Net, part: Part, met: dict[str, Any]) -> Hooks:
        line = self.line
        return Hooks(
            on_event=lambda event: void(line.call("event", event=event)),
            validate=_validation(net, part.validation) if self.assignment.validates else None,
            interrupted=(lambda: bool(line.call("interrupted")[0]["interrupted"]))
            if self.rank == 0
            else None,
            store=DriverStore(line) if self.assignment.keeps else None,
            resume=met["resume"],
            identity=dict(self.assignment.identity),
            own=met["own"],
            layout=layout_of(net.net),
        )


def void(_: object) -> None:
    """For a call whose answer says nothing."""


def _listener(ports: tuple[int, ...]) -> tuple[Listener, str]:
    """A port on the address that Spark knows this executor by, or on all of them."""
    host = task_host()
    try:
        return Listener(host, ports), host
    except CommError:
        return Listener("", ports), host


def _validation(net: Net, records: Records) -> Validate:
    """All of this worker's records that are held out."""
    if len(records):
        net.set_validation_data(records)

    def measure() -> tuple[int, dict[str, float]]:
        return (len(records), net.test()) if len(records) else (0, {})

    return measure


def shared(comm: Comm, mine: Records) -> Records:
    """Everybody's records on each worker: where there are too few for every worker to have some."""
    columns = {name: (one.dtype.str, list(one.shape)) for name, one in mine.columns.items()}
    listed = comm.gather({"columns": columns, "count": len(mine)})
    kept = next(one["columns"] for one in listed if one["count"])
    taken = mine.take(slice(0, len(mine)))
    parts: dict[str, list[Any]] = {name: [] for name in kept}
    for rank, one in enumerate(listed):
        for name, (dtype, shape) in kept.items():
            if not one["count"]:
                continue
            rows = np.zeros((one["count"], *shape), dtype)
            if rank == comm.rank:
                rows[:] = taken[name]
            comm.broadcast_bytes(rows.data.cast("B"), rank)
            parts[name].append(rows)
    return ArrayRecords(**{name: np.concatenate(rows) for name, rows in parts.items()})
