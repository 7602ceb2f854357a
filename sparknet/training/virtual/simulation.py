"""simulate: `sparknet.train` with virtual workers, in one process and on a simulated cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from sparknet import native
from sparknet.comm.wire import NONE
from sparknet.errors import ArgumentError
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.rows import Data
from sparknet.net.scratch import scratch_folder
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.driver.crew import Crew
from sparknet.training.driver.run import Run
from sparknet.training.observers import unheard
from sparknet.training.opening import open_training
from sparknet.training.result import Trained, whole
from sparknet.training.settings.fields import called_with, metadata_of, setting, values_of
from sparknet.training.settings.kinds import Unwritten
from sparknet.training.settings.module import ModuleKeywords, check_subject
from sparknet.training.settings.training import LocalSettings, RunSettings, TrainingSettings
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.host import VirtualHost
from sparknet.training.workers.local import share_of_cores
from sparknet.training.workers.records import WorkerRecords


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

    One host carries all workers, which compute in turn, each with a net or module of its own.
    Weights, data order and strategy are the real ones: with a strategy that does not depend on
    timing, the weights are bit for bit those of `sparknet.train` with as many workers and
    ``threads``.  All times are those of ``cluster``, and ``seconds`` ends training after so many of
    them; validation and snapshots take no time.  Where the cluster loses workers, all go on from
    the newest snapshot (``snapshot_every`` rounds), as on Spark.
    """
    threads = given.threads or share_of_cores(given.workers)
    with scratch_folder() as name, unheard():
        folder = Path(name)
        values = {**values_of(given, TrainingSettings), "snapshots": folder / "snapshots"}
        opening = open_training(given, folder, RunSettings(**values))
        setup, cluster = opening.setup, given.cluster or Cluster()
        store = FolderStore(folder / "snapshots")
        part = WorkerRecords(opening.records, opening.held_out, is_whole=True)
        initial = setup.weights().flat
        with (
            _computing_with(threads),
            Run(initial, store, given.on_event, resume=False, seal=NONE) as run,
        ):
            spec = setup.spec(run.link(), store.place, precision=setup.precision)

            def host(number: int, when_ended: Callable[[], None]) -> VirtualHost:
                return VirtualHost(run.driver, store, spec, part, cluster, folder, when_ended)

            outcome, weights = run.supervise(Crew(run.driver, run.history, host, 1, 1))
    return whole(setup.trained(outcome, weights, run.history))


@contextmanager
def _computing_with(threads: int) -> Iterator[None]:
    """Compute with so many threads; afterwards all is as before, torch's random numbers too."""
    before, torch = native.threads(), sys.modules.get("torch")
    native.set_threads(threads)
    torch_threads = torch and torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]) if torch else nullcontext():
            yield
    finally:
        native.set_threads(before)
        if torch:
            torch.set_num_threads(torch_threads)
