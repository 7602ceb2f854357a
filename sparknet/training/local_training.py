"""train: training on this machine, with one or more worker processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sparknet.devices import check_devices
from sparknet.errors import Diverged
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import class_names
from sparknet.net import Net
from sparknet.net.first_records import check_counts, check_names, find_odd, look_at_first
from sparknet.net.recipe import Recipe
from sparknet.net.scratch import scratch_folder
from sparknet.net.weighting import RowWeights, WeighedNets, label_input
from sparknet.training.checkpoints.runs import FolderRuns, sampled, save_weights
from sparknet.training.driver.setup import NetSetup
from sparknet.training.modules.train import train_module
from sparknet.training.result import Trained
from sparknet.training.settings.fields import called_with, values_of
from sparknet.training.settings.training import ProcessSettings, RunSettings
from sparknet.training.training_net import settings, training_net
from sparknet.training.workers.local import conduct
from sparknet.training.workers.shared_data import TableColumns, open_data, open_shared, write_shared
from sparknet.weights import WeightCollection
from sparknet.weights.files import is_model_folder


@called_with(ProcessSettings)
def train(given: ProcessSettings) -> Trained:
    """Train the net of a solver (whatever `Net` takes) on this machine, or a PyTorch ``module``.

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
    if given.module is not None:
        return train_module(given)
    if given.device is not None:
        check_devices(given.device)
    how = Preprocessing.of(given)
    runs = None if given.snapshots is None else FolderRuns(given.snapshots)
    weights = RowWeights(given.weight_column, given.class_weights)
    with scratch_folder() as folder:

        def make_net(resumed_seed: int | None) -> Net:
            begin_with = given.weights
            if (
                isinstance(begin_with, (str, os.PathLike))
                and Path(begin_with).is_dir()
                and not is_model_folder(begin_with)
            ):
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
        run_settings = RunSettings(**values_of(given, RunSettings))
        nets = WeighedNets(make_net, weights.is_given)
        setup = NetSetup(run_settings, runs, given.resume, validates, nets.make)
        setup.check()
        net = nets.plain
        shared = share_data(net, given, Path(folder))
        records = open_shared(shared["records"])
        if weights.is_given:
            records = weights.added(records, nets.weights, label_input(net))
            shared["records"] = write_shared(records, Path(folder) / "weighed")
            setup.net.set_training_data(records)
        initial = setup.weights()
        ranges = look_at_first(net, records, "training data")
        if shared["validation"] is not None:
            look_at_first(net, open_shared(shared["validation"]), "validation data", ranges)
        setup.identity["data"] = sampled(records)
        batch_size = net.batch_size * int(settings(net).iter_size)
        setup.check(records=len(records), batch_size=batch_size)
        try:
            outcome, trained, run = conduct(
                given, setup, initial.flat, shared, folder, precision=net.precision
            )
        except Diverged:
            find_odd(net, records, "training data")
            raise
        net.set_weights(WeightCollection(initial.layout, trained))
        return run.done(Trained(net.get_weights(), run.history, net, outcome))


def share_data(net: Net, settings: Any, folder: Path) -> dict[str, Any]:
    """Write the files that workers map, in a folder that all of them reach."""
    table = TableColumns.of(settings)
    more = getattr(settings, "weight_column", None)
    training, net.labels = open_data(settings.data, net, table, "training data", more)
    validation: Any = None
    if settings.validation is not None:
        validation, _ = open_data(settings.validation, net, table, "validation data")
    records = write_shared(training, folder / "records")
    net.set_training_data(open_shared(records))  # the data may decide the net's shapes
    check_names(net, net.labels if class_names(training) else (), "training data")
    check_counts(net, getattr(training, "arrays", {}))
    held_out = None if validation is None else write_shared(validation, folder / "validation")
    return {"records": records, "validation": held_out}
