"""simulate: `sparknet.train` with virtual workers, in one process and on a simulated cluster."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sparknet import native
from sparknet.errors import ArgumentError, PeerLost
from sparknet.loaders.order import Order
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.rows import Data
from sparknet.net.scratch import scratch_folder
from sparknet.training.checkpoints.snapshot import newest
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.driver.failure import failure
from sparknet.training.driver.run import interruptible
from sparknet.training.driver.setup import RunSetup
from sparknet.training.driver.stragglers import Stragglers
from sparknet.training.events import Event, tell
from sparknet.training.history import History
from sparknet.training.opening import open_training
from sparknet.training.result import Trained, whole
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.settings.fields import called_with, metadata_of, setting, values_of
from sparknet.training.settings.kinds import Unwritten
from sparknet.training.settings.module import ModuleKeywords, check_subject
from sparknet.training.settings.training import LocalSettings, RunSettings, TrainingSettings
from sparknet.training.virtual.cluster import Cluster, Pace
from sparknet.training.virtual.comm import Stage, VirtualComm, perform
from sparknet.training.virtual.learner import Cast, make_cast
from sparknet.training.workers.local import share_of_cores
from sparknet.training.workers.rounds import Outcome, work

_IN_VAIN = 20
"""Losses in a row, without a new snapshot between them, after which a run ends."""


class VirtualCrew:
    """Workers in threads of this process, one of which runs at a time, in the order of their
    clocks; when one is lost all start again from the newest snapshot."""

    def __init__(
        self,
        given: SimulationSettings,
        setup: RunSetup,
        cast: Cast,
        records: Records,
        held_out: Records | None,
        folder: Path,
    ) -> None:
        self._given, self._setup, self._cast = given, setup, cast
        self._records, self._held_out, self._size = records, held_out, given.workers
        self._store = FolderStore(folder / "snapshots")
        self._cluster = given.cluster or Cluster()
        self._paces = [Pace(self._cluster, rank) for rank in range(self._size)]
        self._is_interrupted = False

    def train(self, initial: NDArray, batch_size: int) -> tuple[Outcome, NDArray, History]:
        """Return the outcome, the weights and the events of a run."""
        given, setup, records = self._given, self._setup, len(self._records)
        validates = self._held_out is not None
        plan = setup.settings.plan(setup.name, validates, records, batch_size, setup.goals)
        plan = replace(plan, snapshot_every=given.snapshot_every)
        self._history, self._stragglers = History(), Stragglers()
        self._began, self._stage = time.time(), Stage(self._size)
        with interruptible(self._interrupt):
            in_vain, attempt = 0, 1
            while in_vain < _IN_VAIN:
                self._introduce(attempt)
                before = newest(self._store)
                results = perform(self._stage, partial(self._work, plan, initial, before))
                if all(isinstance(one, tuple) for one in results):
                    return *results[0], self._history
                rank = self._lose(results)
                attempt += 1
                in_vain = in_vain + 1 if newest(self._store) == before else 0
        fault = f"a worker was lost {in_vain} times in a row: snapshots come too seldom"
        raise PeerLost(rank, "the virtual cluster", fault)

    def _interrupt(self) -> None:
        self._is_interrupted = True

    def _work(
        self, plan: RunPlan, initial: NDArray, resume: int | None, rank: int
    ) -> tuple[Outcome, NDArray]:
        """Train as one of the workers; returns the outcome and its weights."""
        comm = VirtualComm(rank, self._stage, self._cluster, self._paces[rank])
        identity = self._setup.identity
        seed, shuffle = identity["order_seed"], identity["shuffle"]
        order = Order(len(self._records), seed, shuffle, rank, self._size)
        learner = self._cast.learner(comm, order, initial)
        first, metrics = rank == 0, tuple(self._given.metrics)
        hooks = Hooks(
            on_event=partial(self._hear_at, comm) if first else None,
            validate=None if self._held_out is None else self._cast.validation(comm, metrics),
            metrics=metrics,
            interrupted=(lambda: self._is_interrupted) if first else None,
            store=self._store if plan.snapshot_every else None,
            resume=resume,
            identity=identity,
            own=True,
            layout=self._cast.layout if first else None,
        )
        return work(learner, self._setup.strategy, comm, plan, hooks), learner.weights

    # -- what is lost --------------------------------------------------------------------

    def _lose(self, made: Sequence[Any]) -> int:
        """Prepare to go on without a worker, and say which; every other error is raised."""
        errors = [one for one in made if isinstance(one, BaseException)]
        causes = [one for one in errors if not isinstance(one, PeerLost)]
        if causes or self._stage.lost is None:
            raise (causes or errors)[0]
        now, rank = self._stage.lost
        event = {"event": "failure", "time": self._began + now, "worker": rank}
        self._hear(event | failure(made[rank]))
        self._stage = Stage(self._size, now + self._cluster.restart)
        return rank

    # -- events --------------------------------------------------------------------------

    def _introduce(self, attempt: int) -> None:
        def parts(records: Records | None) -> list[int]:
            ends = [len(records or ()) * rank // self._size for rank in range(self._size + 1)]
            return [end - begin for begin, end in itertools.pairwise(ends)]

        workers = [
            {"host": "virtual", "process": rank, "records": count, "held_out": held_out}
            for rank, (count, held_out) in enumerate(
                zip(parts(self._records), parts(self._held_out), strict=True)
            )
        ]
        now = self._began + self._stage.clocks[0]
        self._hear({"event": "workers", "time": now, "attempt": attempt, "workers": workers})

    def _hear_at(self, comm: VirtualComm, event: Event) -> None:
        """Hear an event at the simulated time."""
        self._hear({**event, "time": self._began + comm.clock()})

    def _hear(self, event: Event) -> None:
        self._history(event)
        tell(self._given.on_event, event)
        for slow in self._stragglers.hear(event):
            self._hear(slow)


@dataclass(frozen=True)
class SimulationSettings(LocalSettings, ModuleKeywords):
    """What `simulate` is given."""

    solver: NetSource | Net | None = None  # type: ignore[assignment]
    data: Data | None = None  # type: ignore[assignment]
    _: KW_ONLY
    workers: int = field(metadata=metadata_of(LocalSettings, "workers"))
    cluster: Cluster | None = setting(
        None, Unwritten(), "The simulated cluster; Cluster() unless given."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_subject(self)
        for name in ("solver",) * (self.module is None) + ("data",):
            if getattr(self, name) is None:
                raise ArgumentError(f"missing a required argument: '{name}'")


@called_with(SimulationSettings)
def simulate(given: SimulationSettings) -> Trained:
    """Train as `sparknet.train` does, with virtual workers, and simulate the time of a cluster.

    One engine computes for all workers in turn.  Weights, data order and strategy are the real
    ones: with a strategy that does not depend on timing, the weights are bit for bit those of
    `sparknet.train` with as many workers and ``threads``.  All times are those of ``cluster``, and
    ``seconds`` ends training after so many of them; validation and snapshots take no time.  Where
    the cluster loses workers, all go on from the newest snapshot (``snapshot_every`` rounds), as
    on Spark.
    """
    settings = RunSettings(**{**values_of(given, TrainingSettings), "snapshot_every": 0})
    threads = given.threads or share_of_cores(given.workers)
    with scratch_folder() as name:
        folder = Path(name)
        opening = open_training(given, folder, settings)
        setup, records, held_out = opening.setup, opening.records, opening.held_out
        initial = setup.weights().flat
        crew = VirtualCrew(
            given, setup, make_cast(setup, records, held_out, folder), records, held_out, folder
        )
        with _computing_with(threads) if given.module is None else _same_random_numbers():
            outcome, weights, history = crew.train(initial, setup.batch_size)
    return whole(setup.trained(outcome, weights, history))


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """torch's own are afterwards what they were."""
    import torch

    with torch.random.fork_rng(devices=[]):
        yield


@contextmanager
def _computing_with(threads: int) -> Iterator[None]:
    before = native.threads()
    native.set_threads(threads)
    try:
        yield
    finally:
        native.set_threads(before)
