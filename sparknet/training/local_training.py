"""train: training on this machine, with one or more worker processes."""

from __future__ import annotations

from pathlib import Path

from sparknet.devices import check_devices
from sparknet.errors import Diverged
from sparknet.net.scratch import scratch_folder
from sparknet.training.checkpoints.runs import FolderRuns
from sparknet.training.opening import open_training
from sparknet.training.result import Trained
from sparknet.training.settings.fields import called_with, values_of
from sparknet.training.settings.training import ProcessSettings, RunSettings
from sparknet.training.workers.local import conduct


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
    if given.device is not None:
        check_devices(given.device)
    runs = None if given.snapshots is None else FolderRuns(given.snapshots)
    settings = RunSettings(**values_of(given, RunSettings))
    with scratch_folder() as folder:
        opening = open_training(given, Path(folder), settings, runs)
        setup = opening.setup
        initial = setup.weights().flat
        try:
            outcome, weights, run = conduct(
                given, setup, initial, opening.files, folder, precision=setup.precision
            )
        except Diverged:
            setup.look_for_cause(opening.records)
            raise
        return run.done(setup.trained(outcome, weights, run.history))
