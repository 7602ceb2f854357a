"""VirtualHost: a host that carries all workers in virtual time, in threads of this process."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from sparknet.comm.collectives import Comm
from sparknet.comm.handshake import DRIVER
from sparknet.comm.rpc import Line
from sparknet.comm.threads import start
from sparknet.errors import PeerLost
from sparknet.loaders.records import Records
from sparknet.net.learner import Learner, OnGradient, Steps, repeat
from sparknet.net.model import Model
from sparknet.training.checkpoints.snapshot import newest
from sparknet.training.checkpoints.store import Store
from sparknet.training.driver.crew import WorkerHost
from sparknet.training.driver.driver import Driver
from sparknet.training.driver.failure import Failure, failure
from sparknet.training.virtual.cluster import Cluster, Pace
from sparknet.training.virtual.comm import Stage, VirtualComm, perform
from sparknet.training.workers.records import WorkerPlace, WorkerRecords
from sparknet.training.workers.run_spec import RunSpec
from sparknet.training.workers.worker import Participant, TrainedModel

_IN_VAIN = 20
"""Losses in a row, without a new snapshot between them, after which a run ends."""


class VirtualHost(WorkerHost):
    """Threads of this process, one of which runs at a time, in the order of the workers' clocks.

    When a worker is lost, all start again from the newest snapshot.
    """

    def __init__(
        self,
        driver: Driver,
        store: Store,
        spec: RunSpec,
        part: WorkerRecords,
        cluster: Cluster,
        folder: Path,
        when_ended: Callable[[], None],
    ) -> None:
        self._driver, self._store, self._spec, self._part = driver, store, spec, part
        self._cluster, self._folder, self._when_ended = cluster, folder, when_ended
        self.ranks = range(spec.settings.workers)
        self._paces = [Pace(cluster, rank) for rank in self.ranks]
        self._began = time.time()
        self._stage = Stage(len(self.ranks))
        self._is_cancelled = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        start(self._thread)

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def cancel(self) -> None:
        self._is_cancelled = True
        self._stage.lose(0, 0.0, "it was cancelled")

    def close(self) -> None:
        self._thread.join()

    def failure(self, reports: Sequence[Failure]) -> Exception | None:
        return cast("Exception | None", self._error)

    def _run(self) -> None:
        try:
            self._carry()
        except BaseException as error:
            self._error = error
        finally:
            self._when_ended()

    def _carry(self) -> None:
        """Train to the end, in as many attempts as it takes."""
        in_vain = 0
        while True:
            attempt = self._driver.begin_attempt()
            errors = [one for one in perform(self._stage, partial(self._work, attempt)) if one]
            if not errors:
                return
            in_vain = in_vain + 1 if newest(self._store) == attempt["resume"] else 0
            self._stage = self._restarted(errors, in_vain)

    def _restarted(self, errors: Sequence[BaseException], in_vain: int) -> Stage:
        """Return the stage of the attempt after a loss; raise every other error."""
        causes = [one for one in errors if not isinstance(one, PeerLost)]
        if causes or self._stage.lost is None or self._is_cancelled:
            raise (causes or errors)[0]
        now, rank = self._stage.lost
        loss = next(one for one in errors if isinstance(one, PeerLost) and one.rank == rank)
        event = {"event": "failure", "time": self._began + now, "worker": rank}
        self._driver.hear(event | failure(loss))
        if in_vain == _IN_VAIN:
            fault = f"a worker was lost {in_vain} times in a row: snapshots come too seldom"
            raise PeerLost(rank, "the virtual cluster", fault)
        return Stage(len(self.ranks), now + self._cluster.restart)

    def _work(self, attempt: dict[str, Any], rank: int) -> None:
        comm = VirtualComm(rank, self._stage, self._cluster, self._paces[rank])
        folder = Path(tempfile.mkdtemp(prefix=f"worker-{rank}-", dir=self._folder))
        place = WorkerPlace(rank, comm.size, "virtual", folder)
        line = _DirectLine(self._driver, rank, lambda: self._began + comm.clock())
        worker = _VirtualParticipant(self._spec, place, line)
        worker.part = self._part
        try:
            others = [("virtual", 0, other) for other in self.ranks]
            worker.train_with(comm, {**attempt, "workers": others})
        finally:
            worker.close()


class _VirtualParticipant(Participant):
    """A worker whose steps take what the cluster says."""

    def _prepared(self, model: Model, records: Records, is_whole: bool, comm: Comm) -> TrainedModel:
        trained = super()._prepared(model, records, is_whole, comm)
        assert isinstance(comm, VirtualComm)
        timed: Any = TimedLearner(trained.learner, comm)
        return replace(trained, learner=cast(Learner, timed))


class _DirectLine(Line):
    """A line without a connection: a call is a call of the driver's method."""

    def __init__(self, driver: Driver, rank: int, now: Callable[[], float]) -> None:
        self._driver, self._now = driver, now
        self.rank, self.purpose = rank, DRIVER
        self._parts: Sequence[memoryview] = ()

    def call(
        self, what: str, parts: Sequence[memoryview] = (), **arguments: Any
    ) -> tuple[dict[str, Any], bytearray]:
        self._parts = parts
        answer, payload = self._driver.answer({"call": what, **arguments}, self)
        return answer, cast(bytearray, payload)

    def receive_into(self, view: memoryview) -> None:
        view[:] = self._parts[0]

    def tell(self, event: dict[str, Any]) -> None:
        super().tell({**event, "time": self._now()})


class TimedLearner:
    """A `Learner` whose steps take what the comm's cluster says."""

    def __init__(self, inner: Learner, comm: VirtualComm) -> None:
        self._inner, self._comm = inner, comm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def on_gradient(self) -> OnGradient | None:
        return self._inner.on_gradient

    @on_gradient.setter
    def on_gradient(self, call: OnGradient | None) -> None:
        self._inner.on_gradient = call

    def step(self, count: int) -> Steps:
        done = repeat(lambda: self._timed(self._inner.step(1)), count)
        self._comm.spend(done.seconds)
        return done

    def compute_gradient(self) -> Steps:
        done = self._timed(self._inner.compute_gradient())
        self._comm.spend(done.seconds)
        return done

    def _timed(self, step: Steps) -> Steps:
        return replace(step, seconds=self._comm.pace.step(step.seconds), loading=0.0)
