"""take_part: a worker from its first call to the driver to its last.

It is the same in a local process (`local_worker`) and in a Spark task (`sparknet.spark.task`),
which only read their records from different places.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import CommError, DataError, SparkNetError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords, Records, Subset
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.backend import find_backend
from sparknet.proto import caffe_pb2, parse_solver
from sparknet.training.comm import Comm
from sparknet.training.driver import DriverStore
from sparknet.training.failure import failure
from sparknet.training.learner import Learner, NetFeed, SolverLearner
from sparknet.training.line import Line, Link
from sparknet.training.mesh import Listener
from sparknet.training.plan import Hooks, Validate
from sparknet.training.pycaffe_learner import PycaffeLearner
from sparknet.training.rendezvous import Presence
from sparknet.training.run_spec import RunSpec
from sparknet.training.store import FolderStore, Store
from sparknet.training.strategies import make_strategy
from sparknet.training.tcp import TcpComm
from sparknet.training.worker import Outcome, work
from sparknet.weights import layout_of

Json = dict[str, Any]

_LONGEST_TRACE = 1 << 16


@dataclass(frozen=True)
class WorkerRecords:
    """The records of one worker."""

    training: Records
    validation: Records | None
    check_sum: int = 0
    """The check sum of the training records; 0 if the driver computes it."""
    is_whole: bool = False
    """Whether every worker holds all records and trains on its share of them."""
    dropped: int = 0
    """The rows that were left out, because they cannot be read."""
    reason: str | None = None
    """What is wrong with the first of them."""


@dataclass(frozen=True)
class Seat:
    """The rank and the place of one worker."""

    rank: int
    size: int
    host: str
    folder: Path
    """The folder of its files."""
    device: int | None = None
    """The number of its GPU, or CPU, for a backend that can choose; None where nobody says."""

    @property
    def where(self) -> str:
        return f"{self.host} (process {os.getpid()})"


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
        mesh = TcpComm.connect(listener, rank, addresses, link.secret, deadline, run, link.seal)
        presence.go_on(mesh.report, mesh.fail)
        with mesh as comm:
            self._introduce(comm, part, met)
            learner, outcome = self._train(comm, part, met)
            if rank == 0:
                weights = np.asarray(learner.weights).data.cast("B")
                self.line.call("done", [weights], outcome=vars(outcome))
            comm.barrier()

    def _introduce(self, comm: Comm, part: WorkerRecords, met: Json) -> None:
        """Report the workers and their numbers of records to the driver."""
        shares = [_share(part, one, comm) for one in (part.training, part.validation)]
        counts = comm.gather([*shares, part.dropped, part.reason])
        for number, what in enumerate(("training", "validation")[: 1 + self.spec.validates]):
            if not any(count[number] for count in counts):
                raise DataError(f"the {what} data has no records{_why_none(counts)}")
        if comm.rank:
            return
        workers = [
            {
                "host": host,
                "process": process,
                "records": records,
                "held_out": held,
                "dropped": dropped,
                "reason": reason,
            }
            for (host, _, process), (records, held, dropped, reason) in zip(
                met["workers"], counts, strict=True
            )
        ]
        self._say("workers", attempt=met["attempt"], workers=workers)

    def _say(self, kind: str, **fields: Any) -> None:
        self.line.call("event", event={"event": kind, "time": time.time(), **fields})

    def _train(self, comm: Comm, part: WorkerRecords, met: Json) -> tuple[Learner, Outcome]:
        spec = self.spec
        net = self._net(part)
        assert net.settings is not None
        counts = [int(count) for count in comm.gather(len(part.training))]
        records, is_whole = part.training, part.is_whole
        if not min(counts):
            records, is_whole = _gathered(comm, records), True
        total = len(records) if is_whole else sum(counts)
        place = (comm.rank, comm.size) if is_whole else (0, 1)
        order = Order(len(records), spec.settings.seed, spec.settings.shuffle, *place)
        batches = Batches(records, net.batch_size, order, transforms=net.transforms)
        with closing(batches):
            net.set_training_data(batches, transformed=True)
            learner = self._learner(net, batches, comm)
            batch_size = net.batch_size * int(net.settings.iter_size)
            plan = spec.plan(total, batch_size)
            hooks = self._hooks(net, part, comm, met)
            strategy = make_strategy(spec.settings.strategy)
            return learner, work(learner, strategy, comm, plan, hooks)

    def _net(self, part: WorkerRecords) -> Net:
        spec, seat = self.spec, self.seat
        solver = parse_solver(spec.solver.unpacked(seat.folder))
        solver.snapshot_prefix = str(seat.folder / "solver")
        solver.snapshot_format = caffe_pb2.SolverParameter.BINARYPROTO
        if seat.device is not None:
            find_backend(spec.settings.backend, spec.settings.precision).use(seat.device)
        net = Net(
            solver,
            seed=spec.seed,
            precision=spec.settings.precision,
            preprocessing=spec.preprocessing,
            backend=spec.settings.backend,
        )
        if part.is_whole:
            net.set_training_data(part.training)  # the data may decide the net's shapes
        return net

    def _learner(self, net: Net, batches: Batches, comm: Comm) -> Learner:
        """The learner with the driver's weights, and a random seed of its own for each worker."""
        feed, seed = NetFeed(net, batches), self.spec.seed
        learner: Learner
        if net.backend.is_embedded:
            learner = SolverLearner(net.solver, feed)
        else:
            learner = PycaffeLearner(net, feed, seed + comm.rank)
        net.backend.draw_apart(net.net, seed, comm.rank)
        if comm.rank == 0:
            initial = np.frombuffer(self.line.call("initial")[1], np.float32)
            learner.weights.copy_from(NDArray.view(initial))
        comm.broadcast(learner.weights)
        return learner

    def _hooks(self, net: Net, part: WorkerRecords, comm: Comm, met: Json) -> Hooks:
        spec, line = self.spec, self.line
        metrics = tuple(spec.settings.metrics)
        identity = dict(spec.identity)
        if not part.is_whole:
            identity["data"] = sum(comm.gather(part.check_sum))
        return Hooks(
            on_event=lambda event: void(line.call("event", event=event)),
            validate=_validation(net, part, comm, metrics) if spec.validates else None,
            metrics=metrics,
            interrupted=(lambda: bool(line.call("interrupted")[0]["interrupted"]))
            if comm.rank == 0
            else None,
            store=None if spec.settings.snapshots is None else self._store(),
            resume=met["resume"],
            identity=identity,
            own=met["own"],
            layout=layout_of(net.net),
            inputs=partial(_ranges, net),
        )

    def _store(self) -> Store:
        folder = self.spec.folder
        return DriverStore(self.line) if folder is None else FolderStore(folder)


def _ranges(net: Net) -> dict[str, tuple[float, float]]:
    """The least and the largest value of each input's last batch, but of labels."""
    found = {}
    for name, entry in net.inputs.items():
        values = np.asarray(net.net.blobs[name].data)
        if not entry.is_label and values.size:
            found[name] = float(values.min()), float(values.max())
    return found


def _why_none(counts: Sequence[Any]) -> str:
    dropped = sum(count[2] for count in counts)
    reason = next((count[3] for count in counts if count[3]), None)
    return f": {dropped} rows were dropped; {reason}" if dropped else ""


def void(_: object) -> None:
    """Ignore the answer of a call."""


def _listener(host: str, ports: Sequence[int]) -> tuple[Listener, str]:
    """A listener on this worker's known address, or else on all addresses."""
    try:
        return Listener(host, ports), host
    except CommError:  # a container's address as seen from outside
        return Listener("", ports), host


def _span(part: WorkerRecords, records: Records | None, comm: Comm) -> tuple[int, int]:
    """This worker's share of its records."""
    count = 0 if records is None else len(records)
    if not part.is_whole:
        return 0, count
    return count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size


def _share(part: WorkerRecords, records: Records | None, comm: Comm) -> int:
    begin, end = _span(part, records, comm)
    return end - begin


def _validation(net: Net, part: WorkerRecords, comm: Comm, metrics: tuple[str, ...]) -> Validate:
    """A function that validates on this worker's share of the validation records.

    What is no mean over records, as mean average precision, is computed of all workers' counts.
    """
    begin, end = _span(part, part.validation, comm)
    if part.validation is not None and begin < end:
        mine = Subset(part.validation, slice(begin, end)) if part.is_whole else part.validation
        net.set_validation_data(mine)

    def measure() -> tuple[int, dict[str, float]]:
        means, found = net.measure(metrics) if begin < end else (None, {})
        for name in net.tested.evaluated:
            counts = _all_rows(comm, means and means.judged(name))
            if means is not None and name in found:
                found[name] = means.summary(name, [counts])
        return end - begin, found

    return measure


def _all_rows(comm: Comm, mine: Any) -> Any:
    """The rows of float32 of all workers; None for a worker that has none."""
    own = np.zeros((0, 0), np.float32) if mine is None else np.ascontiguousarray(mine, np.float32)
    parts = []
    for rank, shape in enumerate(comm.gather(list(own.shape))):
        rows = own if rank == comm.rank else np.zeros(shape, np.float32)
        if rows.size:
            comm.broadcast_bytes(rows.data.cast("B"), rank)
            parts.append(rows)
    return np.concatenate(parts) if parts else own


def _gathered(comm: Comm, mine: Records) -> Records:
    """All workers' records, where there are too few for every worker to have some."""
    columns = {name: (one.dtype.str, list(one.shape)) for name, one in mine.columns.items()}
    listed = comm.gather({"columns": columns, "count": len(mine)})
    columns = next(one["columns"] for one in listed if one["count"])
    taken = mine.take(slice(0, len(mine)))
    parts: dict[str, list[Any]] = {name: [] for name in columns}
    for rank, one in enumerate(listed):
        for name, (dtype, shape) in columns.items():
            if not one["count"]:
                continue
            rows = np.zeros((one["count"], *shape), dtype)
            if rank == comm.rank:
                rows[:] = taken[name]
            comm.broadcast_bytes(rows.data.cast("B"), rank)
            parts[name].append(rows)
    return ArrayRecords(**{name: np.concatenate(rows) for name, rows in parts.items()})
