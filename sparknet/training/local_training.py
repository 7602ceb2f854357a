"""train: training on this machine, with one or more worker processes."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from sparknet.loaders.image_keywords import ImageKeywords
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import class_names
from sparknet.net import Net
from sparknet.net.first_look import look_at_first
from sparknet.net.recipe import Recipe
from sparknet.net.rows import Data
from sparknet.net.scratch import scratch_folder
from sparknet.training.beginning import Beginning
from sparknet.training.identity import sampled
from sparknet.training.kinds import Kind, Switch, Unwritten, Whole
from sparknet.training.local_launcher import LocalWorkers, Place
from sparknet.training.run import Run
from sparknet.training.runs import FolderRuns, save_weights
from sparknet.training.setting import called_with, setting, values_of
from sparknet.training.shared_data import as_records, open_shared, share_records, write_shared
from sparknet.training.trained import Trained
from sparknet.training.training_net import settings, training_net
from sparknet.training.training_settings import (
    RunSettings,
    StrPath,
    TrainingSettings,
    WithSolver,
)
from sparknet.training.wire import choose_seal
from sparknet.weights import WeightCollection


@dataclass(frozen=True)
class LocalSettings(ImageKeywords, TrainingSettings, WithSolver):
    """What trainings on this machine are given, by processes or by virtual workers."""

    data: Data
    _: KW_ONLY
    validation: Data | None = setting(
        None, Unwritten(), "Records to validate with, in any form that the training data may have."
    )
    weights: StrPath | WeightCollection | None = setting(
        None,
        Kind(),
        "The initial weights: a caffemodel, a WeightCollection, or a path of snapshots, of which "
        "the newest is used.",
    )
    threads: int | None = setting(
        None,
        Whole(1),
        "Threads of each worker; an equal share of the cores unless given.",
        "threads",
    )


@dataclass(frozen=True)
class ProcessSettings(LocalSettings, RunSettings):
    """What `train` is given."""

    _: KW_ONLY
    resume: bool = setting(
        False, Switch(), "Whether to continue from the newest snapshot of the newest run, if any."
    )


@called_with(ProcessSettings)
def train(given: ProcessSettings) -> Trained:
    """Train the net of a solver (whatever `Net` takes) on this machine.

    Worker processes train on ``data`` (Records, their path, arrays by name or in the order of the
    net's inputs, or a pandas DataFrame) and synchronise by a strategy.  Training ends after
    ``steps``, ``epochs`` or ``seconds``, with ``patience`` also when validation gets no better;
    it ends in an error when the loss diverges or a worker is lost.  An interruption (Ctrl-C) lets
    the workers finish their round and write a snapshot, and is raised again.  ``resize``,
    ``crop``, ``mean`` and the other keywords up to ``mirror`` say what happens to images:
    docs/images.md.

    >>> import numpy as np
    >>> from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
    >>> lines = NetParams(
    ...     "lines",
    ...     RDDLayer("data", shape=[32, 2]),
    ...     RDDLayer("label", shape=[32]),
    ...     LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
    ...     SoftmaxWithLoss("loss", ["ip", "label"]),
    ... )
    >>> solver = SolverParams(net=lines, base_lr=0.5, lr_policy="fixed")
    >>> points = np.random.default_rng(0).normal(size=(1000, 2))
    >>> trained = train(solver, (points, points[:, 0] > points[:, 1]), workers=2, steps=50)
    >>> trained.outcome.iteration
    50
    """
    how = Preprocessing.of(given)
    runs = None if given.snapshots is None else FolderRuns(given.snapshots)
    with scratch_folder() as folder:

        def make_net(resumed_seed: int | None) -> Net:
            begin_with = given.weights
            if isinstance(begin_with, (str, os.PathLike)) and Path(begin_with).is_dir():
                begin_with = save_weights(FolderRuns, os.fspath(begin_with), folder)
            return training_net(
                given.solver,
                begin_with,
                resumed_seed,
                given.precision,
                how,
                given.backend,
                given.dialect,
                Recipe.of(given),
            )

        validates = given.validation is not None
        asked = RunSettings(**values_of(given, RunSettings))
        begun = Beginning(asked, runs, given.resume, validates, make_net)
        begun.check()
        net = begun.net
        shared = share_data(net, given.data, given.validation, Path(folder))
        initial = begun.weights()
        records = open_shared(shared["records"])
        look_at_first(net, records, "training data")
        if shared["validation"] is not None:
            look_at_first(net, open_shared(shared["validation"]), "validation data", training=False)
        begun.identity["data"] = sampled(records)
        batch_size = net.batch_size * int(settings(net).iter_size)
        begun.check(records=len(records), batch_size=batch_size)
        store = begun.open_store()
        seal = choose_seal(given.protection or "sealed")
        with Run(
            initial.flat,
            store,
            given.on_event,
            resume=given.resume,
            seal=seal,
            deadline=given.deadline,
        ) as run:
            place = None if store is None else store.place
            spec = begun.spec(run.link(), net.precision, place)
            share = given.threads or share_of_cores(given.workers)
            places = [
                Place(spec, rank, given.workers, folder, **shared, threads=share)
                for rank in range(given.workers)
            ]
            outcome, trained = run.supervise(LocalWorkers(places, store))
        net.set_weights(WeightCollection(initial.layout, trained))
        return run.done(Trained(net.get_weights(), run.history, net, outcome))


def share_of_cores(workers: int) -> int:
    """The threads of each of so many workers."""
    return max(1, usable_cores() // workers)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_data(net: Net, data: Any, validation: Any, folder: Path) -> dict[str, Any]:
    """Writes the files that workers map, in a folder that all of them reach."""
    given = as_records(data, net)
    net.labels = class_names(given) or net.labels
    records = write_shared(given, folder / "records")
    net.set_training_data(open_shared(records))  # the data may decide the net's shapes
    held_out = None
    if validation is not None:
        held_out = share_records(validation, net, folder / "validation")
    return {"records": records, "validation": held_out}
