"""Crew: the virtual workers of one run, as threads of which one runs at a time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparknet.errors import PeerLost
from sparknet.loaders.order import Order
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.training.events import Event, OnEvent, tell
from sparknet.training.failure import failure
from sparknet.training.history import History
from sparknet.training.learner import Learner
from sparknet.training.plan import Hooks, RunPlan
from sparknet.training.rounds import Outcome, work
from sparknet.training.run import interruptible
from sparknet.training.snapshot import newest
from sparknet.training.store import FolderStore
from sparknet.training.stragglers import Stragglers
from sparknet.training.strategies import Strategy
from sparknet.training.virtual.cast import Cast
from sparknet.training.virtual.cluster import Cluster, Pace
from sparknet.training.virtual.comm import VirtualComm
from sparknet.training.virtual.stage import Stage, perform

_IN_VAIN = 20
"""Losses in a row, without a new snapshot between them, after which a run ends."""


class Crew:
    """Trains with ``workers`` virtual workers, and starts them again when one is lost."""

    def __init__(
        self,
        cast: Cast,
        records: Records,
        held_out: Records | None,
        folder: Path,
        identity: dict[str, Any],
        cluster: Cluster,
        workers: int,
        metrics: Sequence[str] = (),
    ) -> None:
        self._records, self._held_out, self._identity = records, held_out, identity
        self._store = FolderStore(folder / "snapshots")
        self._cluster, self._size, self._metrics = cluster, workers, tuple(metrics)
        self._paces = [Pace(cluster, rank) for rank in range(workers)]
        self._cast = cast
        self._interrupted = False

    def train(
        self, strategy: Strategy, plan: RunPlan, initial: NDArray, on_event: OnEvent | None
    ) -> tuple[Outcome, NDArray, History]:
        """The outcome, the weights and the events of a run."""
        self._history, self._on_event = History(), on_event
        self._stragglers, self._began, self._stage = Stragglers(), time.time(), Stage(self._size)
        with interruptible(self._interrupt):
            in_vain, attempt = 0, 1
            while in_vain < _IN_VAIN:
                self._introduce(attempt)
                before = newest(self._store)
                made = self._together(strategy, plan, initial, before)
                if all(isinstance(one, tuple) for one in made):
                    return self._result(*made[0])
                rank = self._lose(made)
                attempt += 1
                in_vain = in_vain + 1 if newest(self._store) == before else 0
        fault = f"a worker was lost {in_vain} times in a row: snapshots come too seldom"
        raise PeerLost(rank, "the virtual cluster", fault)

    def _result(self, outcome: Outcome, weights: NDArray) -> tuple[Outcome, NDArray, History]:
        return outcome, weights, self._history

    def _interrupt(self) -> None:
        self._interrupted = True

    # -- the workers ---------------------------------------------------------------------

    def _together(
        self, strategy: Strategy, plan: RunPlan, initial: NDArray, resume: int | None
    ) -> list[Any]:
        """The outcome and weights of each worker, or its error."""

        def run(rank: int) -> tuple[Outcome, NDArray]:
            comm = VirtualComm(rank, self._stage, self._cluster, self._paces[rank])
            learner = self._learner(comm, initial)
            outcome = work(learner, strategy, comm, plan, self._hooks(comm, plan, resume))
            return outcome, learner.weights

        return perform(self._stage, run)

    def _learner(self, comm: VirtualComm, initial: NDArray) -> Learner:
        seed, shuffle = self._identity["order_seed"], self._identity["shuffle"]
        order = Order(len(self._records), seed, shuffle, comm.rank, comm.size)
        return self._cast.learner(comm, order, initial)

    def _hooks(self, comm: VirtualComm, plan: RunPlan, resume: int | None) -> Hooks:
        first = comm.rank == 0
        held_out = self._held_out
        return Hooks(
            on_event=partial(self._hear_at, comm) if first else None,
            validate=None if held_out is None else self._cast.validation(comm, self._metrics),
            metrics=self._metrics,
            interrupted=(lambda: self._interrupted) if first else None,
            store=self._store if plan.snapshot_every else None,
            resume=resume,
            identity=self._identity,
            own=True,
            layout=self._cast.layout if first else None,
        )

    # -- what is lost --------------------------------------------------------------------

    def _lose(self, made: Sequence[Any]) -> int:
        """Prepare to go on without a worker, and say which; every other error is raised."""
        errors = [one for one in made if isinstance(one, BaseException)]
        causes = [one for one in errors if not isinstance(one, PeerLost)]
        if causes or self._stage.lost is None:
            raise (causes or errors)[0]
        now, rank = self._stage.lost
        said = {"event": "failure", "time": self._began + now, "worker": rank}
        self._hear(said | failure(made[rank]))
        self._stage = Stage(self._size, now + self._cluster.restart)
        return rank

    # -- events --------------------------------------------------------------------------

    def _introduce(self, attempt: int) -> None:
        def parts(records: Records | None) -> list[int]:
            ends = [len(records or ()) * rank // self._size for rank in range(self._size + 1)]
            return [end - begin for begin, end in itertools.pairwise(ends)]

        workers = [
            {"host": "virtual", "process": rank, "records": count, "held_out": held}
            for rank, (count, held) in enumerate(
                zip(parts(self._records), parts(self._held_out), strict=True)
            )
        ]
        now = self._began + self._stage.clocks[0]
        self._hear({"event": "workers", "time": now, "attempt": attempt, "workers": workers})

    def _hear_at(self, comm: VirtualComm, event: Event) -> None:
        """An event at the simulated time."""
        self._hear({**event, "time": self._began + comm.clock()})

    def _hear(self, event: Event) -> None:
        self._history(event)
        tell(self._on_event, event)
        for slow in self._stragglers.hear(event):
            self._hear(slow)
