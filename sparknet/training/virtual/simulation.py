"""simulate: `sparknet.train` with virtual workers, in one process and on a simulated cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from sparknet import native
from sparknet.errors import SettingError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net.scratch import scratch_folder
from sparknet.training.events import OnEvent
from sparknet.training.identity import sampled
from sparknet.training.local_training import Trained, share_data, usable_cores
from sparknet.training.plan import steps_for
from sparknet.training.shared_data import open_shared
from sparknet.training.strategies import Strategy, make_strategy
from sparknet.training.training_net import settings, training_net
from sparknet.training.training_settings import Beginning, TrainingSettings
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.crew import Crew
from sparknet.weights import WeightCollection

StrPath = str | os.PathLike[str]

_OF_PROCESSES = {"snapshots": None, "keep": 2, "ports": (0,), "deadline": 60.0, "protection": None}
"""Settings of `train` that mean nothing here."""


def simulate(
    solver: Any,
    data: Any,
    *,
    workers: int,
    cluster: Cluster | None = None,
    strategy: str | Strategy = "averaging",
    validation: Any = None,
    weights: StrPath | WeightCollection | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    seconds: float | None = None,
    validate_every: int = 10,
    histograms_every: int = 0,
    metrics: Sequence[str] = (),
    metric: str | None = None,
    goal: Literal["max", "min"] | None = None,
    patience: int | None = None,
    diverged: float = 20.0,
    snapshot_every: int = 0,
    seed: int = 0,
    shuffle: bool = True,
    threads: int | None = None,
    precision: str = "float32",
    on_event: OnEvent | None = None,
    **images: Any,
) -> Trained:
    """Train as `sparknet.train` does, with virtual workers, and simulate the time of a cluster.

    One engine computes for all workers in turn.  Weights, data order and strategy are the real
    ones: with a strategy that does not depend on timing, the weights are bit for bit those of
    `sparknet.train` with as many workers and ``threads``.  All times are those of ``cluster``, and
    ``seconds`` ends training after so many of them; validation and snapshots take no time.  Where
    the cluster loses workers, all go on from the newest snapshot (``snapshot_every`` rounds), as
    on Spark.  The other arguments are those of `sparknet.train`.
    """
    if type(workers) is not int or workers < 1:
        raise SettingError(f"workers must be a whole number of at least 1, not {workers!r}")
    how = Preprocessing.of(images)
    given = TrainingSettings.of({**locals(), **_OF_PROCESSES, "snapshot_every": 0})

    def make_net(seed: int | None) -> Any:
        return training_net(solver, weights, seed, precision, how)

    begun = Beginning(given, None, False, make_net)
    net = begun.net
    with scratch_folder() as folder, _computing_with(threads or max(1, usable_cores() // workers)):
        shared = share_data(net, data, validation, Path(folder))
        records, held_out = (one and open_shared(one) for one in shared.values())
        initial = begun.weights()
        begun.identity["data"] = sampled(records)
        batch = net.batch_size * int(settings(net).iter_size)
        plan = given.plan(net, validation is not None)
        end = plan.steps if epochs is None else steps_for(epochs, len(records), batch, workers)
        plan = replace(
            plan, steps=end, records=len(records), batch_size=batch, snapshot_every=snapshot_every
        )
        crew = Crew(
            net,
            records,
            held_out,
            Path(folder),
            begun.identity,
            cluster or Cluster(),
            workers,
            metrics,
        )
        outcome, trained, history = crew.train(
            make_strategy(strategy), plan, initial.flat, on_event
        )
    net.set_weights(WeightCollection(initial.layout, trained))
    return Trained(net.get_weights(), history, net, outcome)


@contextmanager
def _computing_with(threads: int) -> Iterator[None]:
    before = native.threads()
    native.set_threads(threads)
    try:
        yield
    finally:
        native.set_threads(before)
