"""simulate: `sparknet.train` with virtual workers, in one process and on a simulated cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from sparknet import native
from sparknet.errors import ArgumentError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.recipe import Recipe
from sparknet.net.rows import Data
from sparknet.net.scratch import scratch_folder
from sparknet.training.beginning import NetBeginning
from sparknet.training.conducting import share_of_cores
from sparknet.training.identity import sampled
from sparknet.training.kinds import Unwritten
from sparknet.training.local_settings import LocalSettings
from sparknet.training.local_training import share_data
from sparknet.training.modules.begin import TrainedModule
from sparknet.training.modules.keywords import ModuleKeywords, check_subject
from sparknet.training.modules.train import begin_module
from sparknet.training.setting import called_with, metadata_of, setting, values_of
from sparknet.training.shared_data import open_shared
from sparknet.training.strategies import make_strategy
from sparknet.training.trained import Trained, whole
from sparknet.training.training_net import settings, training_net
from sparknet.training.training_settings import RunSettings, TrainingSettings
from sparknet.training.virtual.cast import NetCast
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.crew import Crew
from sparknet.training.virtual.module_cast import ModuleCast
from sparknet.weights import WeightCollection


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
    if given.module is not None:
        return _simulate_module(given)
    how = Preprocessing.of(given)
    values = {**values_of(given, TrainingSettings), "snapshot_every": 0}
    validates = given.validation is not None

    def make_net(seed: int | None) -> Any:
        return training_net(
            given.solver,
            given.weights,
            seed,
            given.precision,
            how,
            dialect=given.dialect,
            recipe=Recipe.of(given),
        )

    begun = NetBeginning(RunSettings(**values), None, False, validates, make_net)
    net = begun.net
    threads = given.threads or share_of_cores(given.workers)
    with scratch_folder() as folder, _computing_with(threads):
        shared = share_data(net, given, Path(folder))
        records, held_out = (one and open_shared(one) for one in shared.values())
        initial = begun.weights()
        begun.identity["data"] = sampled(records)
        batch = net.batch_size * int(settings(net).iter_size)
        plan = begun.settings.plan(begun.name, validates, len(records), batch, begun.goals)
        crew = Crew(
            NetCast(net, records, held_out, Path(folder), begun.identity["seed"]),
            records,
            held_out,
            Path(folder),
            begun.identity,
            given.cluster or Cluster(),
            given.workers,
            given.metrics,
        )
        outcome, trained, history = crew.train(
            make_strategy(given.strategy),
            replace(plan, snapshot_every=given.snapshot_every),
            initial.flat,
            given.on_event,
        )
    net.set_weights(WeightCollection(initial.layout, trained))
    return whole(Trained(net.get_weights(), history, net, outcome))


def _simulate_module(given: SimulationSettings) -> TrainedModule:
    values = RunSettings(**{**values_of(given, TrainingSettings), "snapshot_every": 0})
    validates = given.validation is not None
    with scratch_folder() as folder:
        inside = Path(folder)
        begun, shared = begin_module(given, inside, values, None, False)
        records = open_shared(str(shared["records"]))
        held_out = open_shared(shared["validation"]) if shared["validation"] else None
        initial = begun.weights()
        size = begun.batch_size
        plan = begun.settings.plan(begun.name, validates, len(records), size, begun.goals)
        cast = ModuleCast(begun.sent, initial.layout, records, held_out, inside, given.seed)
        crew = Crew(
            cast,
            records,
            held_out,
            inside,
            begun.identity,
            given.cluster or Cluster(),
            given.workers,
            given.metrics,
        )
        with _same_random_numbers():
            outcome, weights, history = crew.train(
                make_strategy(given.strategy),
                replace(plan, snapshot_every=given.snapshot_every),
                initial.flat,
                given.on_event,
            )
    return whole(begun.trained(outcome, weights, history))


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
